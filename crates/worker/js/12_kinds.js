// One function per class of object that inspection distinguishes: each fills in the shape that 10_inspect.js lays out.
const { uncurryThis, list, inspectParts: parts } = base;
const { kinds } = parts;
const { keys: ObjectKeys, hasOwn: ObjectHasOwn, getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor } = Object;
const getter = (holder, key) => uncurryThis(ObjectGetOwnPropertyDescriptor(holder, key).get);
const { min: MathMin, max: MathMax } = Math;
const NumberPrototypeToString = uncurryThis(Number.prototype.toString);
const NumberIsNaN = Number.isNaN;
const ObjectPrototypePropertyIsEnumerable = uncurryThis(Object.prototype.propertyIsEnumerable);
const StringPrototypePadStart = uncurryThis(String.prototype.padStart);
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const DatePrototypeGetTime = uncurryThis(Date.prototype.getTime);
const DatePrototypeToISOString = uncurryThis(Date.prototype.toISOString);
const MapPrototypeGetSize = getter(Map.prototype, "size");
const MapPrototypeEntries = uncurryThis(Map.prototype.entries);
const MapIteratorPrototypeNext = uncurryThis(Object.getPrototypeOf(new Map().entries()).next);
const SetPrototypeGetSize = getter(Set.prototype, "size");
const SetPrototypeValues = uncurryThis(Set.prototype.values);
const SetIteratorPrototypeNext = uncurryThis(Object.getPrototypeOf(new Set().values()).next);
const ArrayBufferPrototypeGetByteLength = getter(ArrayBuffer.prototype, "byteLength");
const ArrayBufferPrototypeGetDetached = getter(ArrayBuffer.prototype, "detached");
const SharedArrayBufferPrototypeGetByteLength =
  typeof SharedArrayBuffer === "function" ? getter(SharedArrayBuffer.prototype, "byteLength") : undefined;
const DataViewPrototypeGetBuffer = getter(DataView.prototype, "buffer");
const DataViewPrototypeGetByteLength = getter(DataView.prototype, "byteLength");
const DataViewPrototypeGetByteOffset = getter(DataView.prototype, "byteOffset");
const TypedArrayPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const TypedArrayPrototypeGetTag = getter(TypedArrayPrototype, Symbol.toStringTag);
const TypedArrayPrototypeGetLength = getter(TypedArrayPrototype, "length");
const TypedArrayPrototypeGetByteLength = getter(TypedArrayPrototype, "byteLength");
const TypedArrayPrototypeGetByteOffset = getter(TypedArrayPrototype, "byteOffset");
const TypedArrayPrototypeGetBuffer = getter(TypedArrayPrototype, "buffer");
const Uint8ArrayConstructor = Uint8Array;
const RegExpPrototypeGetSource = getter(RegExp.prototype, "source");
const FLAGS = Object.entries({
  hasIndices: "d", global: "g", ignoreCase: "i", multiline: "m", dotAll: "s", unicode: "u", unicodeSets: "v", sticky: "y",
}).map(([name, letter]) => ({ __proto__: null, letter, isSet: getter(RegExp.prototype, name) }));
const BOXES = {
  __proto__: null,
  Boolean: uncurryThis(Boolean.prototype.valueOf),
  Number: uncurryThis(Number.prototype.valueOf),
  String: uncurryThis(String.prototype.valueOf),
  Symbol: uncurryThis(Symbol.prototype.valueOf),
  BigInt: uncurryThis(BigInt.prototype.valueOf),
};

kinds.Object = (ctx, value, shape, name, tag) => {
  if (parts.isError(value, shape.kind)) return kinds.Error(ctx, value, shape, name, tag);
  shape.keys = parts.keysOf(ctx, value);
  shape.open = name === "Object" && tag === "" ? "{" : `${parts.prefix(name, tag, shape.kind)}{`;
  let bare = shape.keys.length === 0;
  if (bare && ctx.showHidden) parts.inheritedSlots(value, () => { bare = false; });
  if (bare) shape.done = `${shape.open}}`;
};

kinds.Arguments = (ctx, value, shape, name, tag) => {
  kinds.Object(ctx, value, shape, name, tag);
  shape.open = name === null ? shape.open : "[Arguments] {";
  if (shape.keys.length === 0) shape.done = `${shape.open}}`;
};

kinds.Error = (ctx, value, shape, name, tag) => {
  shape.keys = parts.errorKeys(ctx, value);
  only(shape, parts.errorText(ctx, value, shape, name, tag));
};

// Sets the text before the braces. Without properties there are no braces.
function only(shape, text) {
  shape.base = text;
  if (shape.keys.length === 0) shape.done = text;
}

const callable = (ctx, value, shape, name, tag) => {
  shape.keys = parts.keysOf(ctx, value);
  only(shape, parts.functionText(value, shape.kind, name, tag));
};
kinds.Function = kinds.AsyncFunction = kinds.GeneratorFunction = kinds.AsyncGeneratorFunction = callable;

kinds.Date = (ctx, value, shape, name, tag) => {
  shape.keys = parts.keysOf(ctx, value);
  const prefix = parts.prefix(name, tag, "Date");
  const text = NumberIsNaN(DatePrototypeGetTime(value)) ? "Invalid Date" : DatePrototypeToISOString(value);
  only(shape, prefix === "Date " ? text : prefix + text);
};

kinds.RegExp = (ctx, value, shape, name, tag) => {
  shape.keys = parts.keysOf(ctx, value);
  const prefix = parts.prefix(name, tag, "RegExp");
  let text = `${prefix === "RegExp " ? "" : prefix}/${RegExpPrototypeGetSource(value)}/`;
  for (let i = 0; i < FLAGS.length; i++) if (FLAGS[i].isSet(value)) text += FLAGS[i].letter;
  only(shape, text);
  if (ctx.seen.length > ctx.depth) shape.done = text;
};

const boxed = (ctx, value, shape, name, tag) => {
  const { kind } = shape;
  const primitive = BOXES[kind](value);
  shape.keys = parts.keysOf(ctx, value);
  if (kind === "String") shape.keys = dropFirst(shape.keys, primitive.length);
  const by = name === kind ? "" : ` (${name ?? "null prototype"})`;
  const text = `[${kind}${by}: ${parts.formatPrimitive(ctx, primitive)}]`;
  only(shape, tag !== "" && tag !== name ? `${text} [${tag}]` : text);
};
kinds.Boolean = kinds.Number = kinds.String = kinds.Symbol = kinds.BigInt = boxed;

// A loop, because Array.prototype.slice would read the species of the array's constructor.
function dropFirst(array, start) {
  const copy = list();
  for (let i = start; i < array.length; i++) copy[i - start] = array[i];
  return copy;
}

kinds.Array = (ctx, value, shape, name, tag) => {
  const { length } = value;
  shape.keys = host.ownNonIndexKeys(value, !ctx.showHidden);
  shape.open = name === "Array" && tag === "" ? "[" : `${parts.prefix(name, tag, "Array", `(${length})`)}[`;
  shape.close = "]";
  shape.isList = true;
  shape.fill = fillArray;
  if (length === 0 && shape.keys.length === 0) shape.done = `${shape.open}]`;
};

const limitOf = (ctx, length) => MathMin(MathMax(0, ctx.maxArrayLength), length);

function addRest(ctx, output, count) {
  if (count > 0) parts.add(ctx, output, ctx.room, parts.more(count, "item"));
}

// Consecutive holes count as one entry.
function fillArray(ctx, value, depth, output) {
  const { length } = value;
  const limit = limitOf(ctx, length);
  const next = elementFinder(value);
  let index = 0;
  while (index < length && output.length < limit && ctx.room > 0) {
    const found = next(index);
    if (found > index) {
      const holes = found - index;
      parts.add(ctx, output, ctx.room, `<${holes} empty item${holes > 1 ? "s" : ""}>`);
    } else {
      const descriptor = ObjectGetOwnPropertyDescriptor(value, index);
      parts.add(ctx, output, ctx.room, parts.formatSlot(ctx, descriptor, depth));
    }
    index = MathMax(found, index + 1);
  }
  addRest(ctx, output, length - index);
}

// Finds the first element at or after an index. After the first hole only enumerable ones count, as in Node.
// After a long run of holes it uses the keys, because an array may have four billion elements.
function elementFinder(array) {
  const { length } = array;
  let keys, k = 0, sparse = false;
  return (index) => {
    if (!sparse && ObjectHasOwn(array, index)) return index;
    sparse = true;
    const near = MathMin(length, index + 10000);
    for (let i = index; i < near; i++) if (ObjectPrototypePropertyIsEnumerable(array, i)) return i;
    if (near === length) return length;
    keys ??= ObjectKeys(array);
    while (k < keys.length && +keys[k] < near) k++;
    return k < keys.length && +keys[k] < length ? +keys[k] : length;
  };
}

kinds.TypedArray = (ctx, value, shape, name, tag) => {
  const length = TypedArrayPrototypeGetLength(value);
  shape.keys = host.ownNonIndexKeys(value, !ctx.showHidden);
  shape.open = `${parts.prefix(name, tag, TypedArrayPrototypeGetTag(value), `(${length})`)}[`;
  shape.close = "]";
  shape.isList = true;
  shape.fill = fillTypedArray;
  if (length === 0 && shape.keys.length === 0 && !ctx.showHidden) shape.done = `${shape.open}]`;
};

function fillTypedArray(ctx, value, depth, output) {
  const length = TypedArrayPrototypeGetLength(value);
  const limit = limitOf(ctx, length);
  for (let i = 0; i < limit; i++) parts.add(ctx, output, ctx.room, parts.formatPrimitive(ctx, value[i]));
  addRest(ctx, output, length - limit);
  if (!ctx.showHidden) return;
  const byteLength = TypedArrayPrototypeGetByteLength(value);
  addHidden(ctx, output, "BYTES_PER_ELEMENT", length === 0 ? 0 : byteLength / length, depth);
  addHidden(ctx, output, "length", length, depth);
  addHidden(ctx, output, "byteLength", byteLength, depth);
  addHidden(ctx, output, "byteOffset", TypedArrayPrototypeGetByteOffset(value), depth);
  addHidden(ctx, output, "buffer", TypedArrayPrototypeGetBuffer(value), depth, true);
}

function addHidden(ctx, output, key, value, depth, insideView) {
  parts.add(ctx, output, ctx.room, `[${key}]: ${parts.formatInner(ctx, value, depth, insideView)}`);
}

const buffer = (ctx, value, shape, name, tag, insideView) => {
  shape.keys = parts.keysOf(ctx, value);
  shape.open = `${parts.prefix(name, tag, shape.kind)}{`;
  const shared = shape.kind === "SharedArrayBuffer";
  shape.fill = (_, __, depth, output) => {
    const byteLength = shared ? SharedArrayBufferPrototypeGetByteLength(value) : ArrayBufferPrototypeGetByteLength(value);
    const detached = !shared && ArrayBufferPrototypeGetDetached(value);
    if (!insideView) parts.add(ctx, output, ctx.room, detached ? "(detached)" : `[Uint8Contents]: <${hex(ctx, value, byteLength)}>`);
    addHidden(ctx, output, "byteLength", byteLength, depth);
  };
};
kinds.ArrayBuffer = kinds.SharedArrayBuffer = buffer;

function hex(ctx, value, byteLength) {
  const limit = limitOf(ctx, byteLength);
  const bytes = new Uint8ArrayConstructor(value, 0, limit);
  let text = "";
  for (let i = 0; i < limit; i++) text += (i === 0 ? "" : " ") + StringPrototypePadStart(NumberPrototypeToString(bytes[i], 16), 2, "0");
  return limit < byteLength ? `${text} ${parts.more(byteLength - limit, "byte")}` : text;
}

kinds.DataView = (ctx, value, shape, name, tag) => {
  shape.keys = parts.keysOf(ctx, value);
  shape.open = `${parts.prefix(name, tag, "DataView")}{`;
  shape.fill = (_, __, depth, output) => {
    addHidden(ctx, output, "byteLength", orUndefined(DataViewPrototypeGetByteLength, value), depth);
    addHidden(ctx, output, "byteOffset", orUndefined(DataViewPrototypeGetByteOffset, value), depth);
    addHidden(ctx, output, "buffer", DataViewPrototypeGetBuffer(value), depth);
  };
};

// A view has no length if its buffer is detached or has become too small.
function orUndefined(get, view) {
  try {
    return get(view);
  } catch {
    return undefined;
  }
}

kinds.Map = (ctx, value, shape, name, tag) => {
  const size = MapPrototypeGetSize(value);
  shape.keys = parts.keysOf(ctx, value);
  shape.open = `${parts.prefix(name, tag, "Map", `(${size})`)}{`;
  shape.fill = fillMap;
  if (size === 0 && shape.keys.length === 0) shape.done = `${shape.open}}`;
};

function fillMap(ctx, value, depth, output) {
  const size = MapPrototypeGetSize(value);
  const limit = limitOf(ctx, size);
  const entries = MapPrototypeEntries(value);
  while (output.length < limit && ctx.room > 0) {
    const step = MapIteratorPrototypeNext(entries);
    if (step.done) break;
    parts.add(ctx, output, ctx.room, pair(ctx, step.value[0], step.value[1], depth));
  }
  addRest(ctx, output, size - output.length);
}
const pair = (ctx, key, value, depth) => `${parts.formatInner(ctx, key, depth)} => ${parts.formatInner(ctx, value, depth)}`;

kinds.Set = (ctx, value, shape, name, tag) => {
  const size = SetPrototypeGetSize(value);
  shape.keys = parts.keysOf(ctx, value);
  shape.open = `${parts.prefix(name, tag, "Set", `(${size})`)}{`;
  shape.fill = fillSet;
  if (size === 0 && shape.keys.length === 0) shape.done = `${shape.open}}`;
};

function fillSet(ctx, value, depth, output) {
  const size = SetPrototypeGetSize(value);
  const limit = limitOf(ctx, size);
  const values = SetPrototypeValues(value);
  while (output.length < limit && ctx.room > 0) {
    const step = SetIteratorPrototypeNext(values);
    if (step.done) break;
    parts.add(ctx, output, ctx.room, parts.formatInner(ctx, step.value, depth));
  }
  addRest(ctx, output, size - output.length);
}

const iterator = (ctx, value, shape, name, tag) => {
  const type = StringPrototypeSlice(shape.kind, 0, 3);
  const entries = host.previewEntries(value);
  const own = tag === "" || tag === `${type} Iterator` ? "" : `${tag}] [`;
  shape.keys = parts.keysOf(ctx, value);
  shape.open = `[${own}${type} ${entries[1] ? "Entries" : "Iterator"}] {`;
  shape.fill = (_, __, depth, output) => fillPreview(ctx, entries, depth, output, entryPair);
};
kinds.MapIterator = kinds.SetIterator = iterator;

function entryPair(ctx, key, value, depth) {
  const both = list();
  ctx.indent += 2;
  both[0] = parts.formatValue(ctx, key, depth);
  both[1] = parts.formatValue(ctx, value, depth);
  const text = parts.layout(ctx, both, { __proto__: null, base: "", open: "[", close: "]", isList: true }, depth);
  ctx.indent -= 2;
  return text;
}

function fillPreview(ctx, preview, depth, output, format) {
  const entries = preview[0];
  const step = preview[1] ? 2 : 1;
  const count = entries.length / step;
  const limit = limitOf(ctx, count);
  for (let i = 0; i < limit && ctx.room > 0; i++) {
    parts.add(ctx, output, ctx.room, step === 2
      ? format(ctx, entries[2 * i], entries[2 * i + 1], depth)
      : parts.formatInner(ctx, entries[i], depth));
  }
  addRest(ctx, output, count - output.length);
}

const weak = (ctx, value, shape, name, tag) => {
  shape.keys = parts.keysOf(ctx, value);
  shape.open = `${parts.prefix(name, tag, shape.kind)}{`;
  shape.fill = (_, __, depth, output) => {
    if (ctx.showHidden) fillPreview(ctx, host.previewEntries(value), depth, output, pair);
    else parts.add(ctx, output, ctx.room, "<items unknown>");
  };
};
kinds.WeakMap = kinds.WeakSet = weak;

kinds.Promise = (ctx, value, shape, name, tag) => {
  shape.keys = parts.keysOf(ctx, value);
  shape.open = `${parts.prefix(name, tag, "Promise")}{`;
  shape.fill = (_, __, depth, output) => {
    const details = host.promiseDetails(value);
    if (details[0] === 0) return void parts.add(ctx, output, ctx.room, "<pending>");
    parts.add(ctx, output, ctx.room, (details[0] === 2 ? "<rejected> " : "") + parts.formatInner(ctx, details[1], depth));
  };
};

kinds.External = (ctx, value, shape) => { shape.done = "[External]"; };
