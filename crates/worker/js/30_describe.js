// The texts of a run: its result as JSON if JSON represents it faithfully, otherwise as an inspection, and its uncaught exception.
const { uncurryThis, list, inspectParts: parts } = base;
const { is: ObjectIs, hasOwn: ObjectHasOwn, freeze: ObjectFreeze, getPrototypeOf: ObjectGetPrototypeOf } = Object;
const { getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor } = Object;
const { ownKeys: ReflectOwnKeys } = Reflect;
const { stringify: JSONStringify } = JSON;
const { isFinite: NumberIsFinite } = Number;
const { prototype: ObjectPrototype } = Object;
const { prototype: ArrayPrototype } = Array;
const ArrayPrototypeJoin = uncurryThis(Array.prototype.join);
const MapConstructor = Map;
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeSet = uncurryThis(Map.prototype.set);
const SetConstructor = Set;
const SetPrototypeAdd = uncurryThis(Set.prototype.add);
const SetPrototypeDelete = uncurryThis(Set.prototype.delete);
const SetPrototypeHas = uncurryThis(Set.prototype.has);

// Thrown if a description would exceed the maximum length.
base.ResultTooLarge = ObjectFreeze({ __proto__: null, message: "the result is too large" });

const DEEPER = { __proto__: null, depth: 6 };
const THROWN = { __proto__: null, depth: 5, customInspect: false };
const THROWN_ERROR = { ...THROWN, __proto__: null, uncaught: true };

base.describeResult = (value, maxChars) => {
  const text = jsonText(value, maxChars) ?? base.inspect(value, DEEPER);
  if (text.length > maxChars) throw base.ResultTooLarge;
  return text;
};

base.describeError = (thrown) => {
  const isError = thrown !== null && typeof thrown === "object" && parts.isError(thrown, host.classOf(thrown));
  return isError ? base.inspect(thrown, THROWN_ERROR) : `Uncaught ${base.inspect(thrown, THROWN)}`;
};

const jsonText = (value, maxChars) => walk(value, newWriter(maxChars), undefined);

// With shared parts, a few objects can expand to millions. So above this number the length is computed first, once per large part.
const MEASURE_AT = 1 << 18;
const LARGE_PART_CHARS = 1024;

// Undefined if JSON can't represent the value. Uses its own stack, so deep nesting uses heap and never overflows the call stack.
// `measured` has the lengths of parts already seen, and is given only while measuring.
function walk(root, writer, measured) {
  const path = newPath();
  let value = root, opened = 0;
  for (;;) {
    const text = primitiveText(value, writer.maxChars);
    const known = text === undefined && measured !== undefined ? MapPrototypeGet(measured, value) : undefined;
    if (text !== undefined) {
      writer.add(text);
    } else if (known !== undefined) {
      writer.count(known);
    } else {
      const frame = parts.isObject(value) && !path.has(value) ? openFrame(value, writer.size) : undefined;
      if (frame === undefined) return undefined;
      if (++opened === MEASURE_AT && measured === undefined && measure(root, writer.maxChars) === undefined) return undefined;
      path.push(frame);
      writer.add(frame.keys === undefined ? "[" : "{");
    }
    let frame = path.last();
    while (frame !== undefined && frame.next === frame.length) {
      writer.add(frame.keys === undefined ? "]" : "}");
      const length = writer.size - frame.from;
      if (measured !== undefined && length > LARGE_PART_CHARS) MapPrototypeSet(measured, frame.value, length);
      frame = path.pop();
    }
    if (frame === undefined) return writer.finish();
    if (frame.next > 0) writer.add(",");
    const key = frame.keys === undefined ? frame.next : frame.keys[frame.next];
    frame.next++;
    const slot = typeof key === "symbol" ? undefined : ObjectGetOwnPropertyDescriptor(frame.value, key);
    if (slot === undefined || !slot.enumerable || !ObjectHasOwn(slot, "value")) return undefined;
    if (frame.keys !== undefined) writer.add(`${JSONStringify(key)}:`);
    value = slot.value;
  }
}

function measure(root, maxChars) {
  const counter = newWriter(maxChars);
  counter.add = (text) => counter.count(text.length);
  return walk(root, counter, new MapConstructor());
}

// Joins small texts by the thousand: concatenating them one by one takes several times as long.
function newWriter(maxChars) {
  const texts = list();
  let whole = "", used = 0;
  const writer = {
    __proto__: null, maxChars, size: 0,
    count(length) {
      writer.size += length;
      if (writer.size > maxChars) throw base.ResultTooLarge;
    },
    add(text) {
      writer.count(text.length);
      texts[used++] = text;
      if (used < 2048) return;
      whole += ArrayPrototypeJoin(texts, "");
      used = 0;
    },
    finish() {
      texts.length = used;
      return whole + ArrayPrototypeJoin(texts, "");
    },
  };
  return writer;
}

// The ancestors of the current object, innermost last. Near the root a linear search is fastest; deeper ones are in a set.
const LOOKED_AT = 16;
function newPath() {
  const frames = list();
  const deeper = new SetConstructor();
  let depth = 0;
  const has = (value) => {
    for (let i = 0; i < depth && i < LOOKED_AT; i++) if (frames[i].value === value) return true;
    return depth > LOOKED_AT && SetPrototypeHas(deeper, value);
  };
  const push = (frame) => {
    if (depth >= LOOKED_AT) SetPrototypeAdd(deeper, frame.value);
    frames[depth++] = frame;
  };
  const last = () => depth === 0 ? undefined : frames[depth - 1];
  const pop = () => {
    depth--;
    if (depth >= LOOKED_AT) SetPrototypeDelete(deeper, frames[depth].value);
    frames[depth] = undefined;
    return last();
  };
  return { __proto__: null, has, push, last, pop };
}

function primitiveText(value, maxChars) {
  switch (typeof value) {
    case "string":
      if (value.length > maxChars) throw base.ResultTooLarge;
      return JSONStringify(value);
    case "number": return NumberIsFinite(value) && !ObjectIs(value, -0) ? `${value}` : undefined;
    case "boolean": return `${value}`;
    default: return value === null ? "null" : undefined;
  }
}

// Whether a value is a dense array or a plain object, and not merely similar to one.
function openFrame(value, from) {
  const kind = host.classOf(value);
  if (kind === "Array") {
    if (ObjectGetPrototypeOf(value) !== ArrayPrototype) return undefined;
    const extra = host.ownNonIndexKeys(value, false);
    for (let i = 0; i < extra.length; i++) if (extra[i] !== "length") return undefined;
    return { __proto__: null, value, keys: undefined, next: 0, length: value.length, from };
  }
  if (kind !== "Object") return undefined;
  const prototype = ObjectGetPrototypeOf(value);
  if (prototype !== null && prototype !== ObjectPrototype) return undefined;
  const keys = ReflectOwnKeys(value);
  return { __proto__: null, value, keys, next: 0, length: keys.length, from };
}
