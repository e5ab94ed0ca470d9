// What a run reports: its result as JSON where JSON can hold it faithfully, else as an inspection, and its uncaught exception.
const { uncurryThis, list, inspectParts: parts } = base;
const { is: ObjectIs, hasOwn: ObjectHasOwn, freeze: ObjectFreeze, getPrototypeOf: ObjectGetPrototypeOf } = Object;
const { getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor } = Object;
const { ownKeys: ReflectOwnKeys } = Reflect;
const { stringify: JSONStringify } = JSON;
const { isFinite: NumberIsFinite } = Number;
const { prototype: ObjectPrototype } = Object;
const { prototype: ArrayPrototype } = Array;
const ArrayPrototypeJoin = uncurryThis(Array.prototype.join);
const SetConstructor = Set;
const SetPrototypeAdd = uncurryThis(Set.prototype.add);
const SetPrototypeDelete = uncurryThis(Set.prototype.delete);
const SetPrototypeHas = uncurryThis(Set.prototype.has);

// Thrown when a description would be longer than it may be.
base.ResultTooLarge = ObjectFreeze({ __proto__: null, message: "the result is too large" });

const DEEPER = { __proto__: null, depth: 6 };
const UNCAUGHT = { __proto__: null, depth: 5, customInspect: false, uncaught: true };

base.describeResult = (value, maxChars) => {
  const text = jsonText(value, maxChars) ?? base.inspect(value, DEEPER);
  if (text.length > maxChars) throw base.ResultTooLarge;
  return text;
};

base.describeError = (thrown) => {
  const isError = thrown !== null && typeof thrown === "object" && parts.isError(thrown, host.classOf(thrown));
  const text = base.inspect(thrown, UNCAUGHT);
  return isError ? text : `Uncaught ${text}`;
};

// undefined when the value has anything that JSON can't say. It keeps its own stack, so depth costs heap and never overflows.
function jsonText(root, maxChars) {
  const writer = newWriter(maxChars);
  const path = newPath();
  let value = root;
  for (;;) {
    const text = primitiveText(value, maxChars);
    if (text === undefined) {
      const inner = isObject(value) && !path.has(value) ? openFrame(value) : undefined;
      if (inner === undefined) return undefined;
      path.push(inner);
      writer.add(inner.keys === undefined ? "[" : "{");
    } else {
      writer.add(text);
    }
    let frame = path.last();
    while (frame !== undefined && frame.next === frame.length) {
      writer.add(frame.keys === undefined ? "]" : "}");
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

// Joins small texts by the thousand: concatenating them one by one takes several times as long.
function newWriter(maxChars) {
  const texts = list();
  let whole = "", count = 0, size = 0;
  const flush = () => {
    texts.length = count;
    whole += ArrayPrototypeJoin(texts, "");
    count = 0;
    return whole;
  };
  const add = (text) => {
    size += text.length;
    if (size > maxChars) throw base.ResultTooLarge;
    texts[count++] = text;
    if (count === 2048) flush();
  };
  return { __proto__: null, add, finish: flush };
}

// The objects that are open, innermost last. Near the root a look at each is cheapest; what lies deeper is in a set too.
const LOOKED_AT = 16;
function newPath() {
  const frames = list();
  const deeper = new SetConstructor();
  const has = (value) => {
    for (let i = 0; i < frames.length && i < LOOKED_AT; i++) if (frames[i].value === value) return true;
    return frames.length > LOOKED_AT && SetPrototypeHas(deeper, value);
  };
  const push = (frame) => {
    if (frames.length >= LOOKED_AT) SetPrototypeAdd(deeper, frame.value);
    frames[frames.length] = frame;
  };
  const last = () => frames.length === 0 ? undefined : frames[frames.length - 1];
  const pop = () => {
    if (frames.length > LOOKED_AT) SetPrototypeDelete(deeper, last().value);
    frames.length -= 1;
    return last();
  };
  return { __proto__: null, has, push, last, pop };
}

const isObject = (value) => value !== null && typeof value === "object";

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

// A dense array or a plain object, and nothing that only looks like one.
function openFrame(value) {
  const kind = host.classOf(value);
  if (kind === "Array") {
    if (ObjectGetPrototypeOf(value) !== ArrayPrototype) return undefined;
    const extra = host.ownNonIndexKeys(value, false);
    for (let i = 0; i < extra.length; i++) if (extra[i] !== "length") return undefined;
    return { __proto__: null, value, keys: undefined, next: 0, length: value.length };
  }
  if (kind !== "Object") return undefined;
  const prototype = ObjectGetPrototypeOf(value);
  if (prototype !== null && prototype !== ObjectPrototype) return undefined;
  const keys = ReflectOwnKeys(value);
  return { __proto__: null, value, keys, next: 0, length: keys.length };
}
