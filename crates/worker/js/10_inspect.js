// Converts any value to text as Node's util.inspect does. User code runs only where Node would run it, and can't break the result.
const { uncurryThis, list } = base;
const { is: ObjectIs, keys: ObjectKeys, hasOwn: ObjectHasOwn } = Object;
const { getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor, getOwnPropertySymbols: ObjectGetOwnPropertySymbols } = Object;
const { ownKeys: ReflectOwnKeys, apply: ReflectApply } = Reflect;
const { min: MathMin, max: MathMax, sqrt: MathSqrt, round: MathRound, floor: MathFloor } = Math;
const ObjectPrototypePropertyIsEnumerable = uncurryThis(Object.prototype.propertyIsEnumerable);
const ArrayPrototypeJoin = uncurryThis(Array.prototype.join);
const ArrayPrototypeSort = uncurryThis(Array.prototype.sort);
const StringPrototypeIncludes = uncurryThis(String.prototype.includes);
const StringPrototypeRepeat = uncurryThis(String.prototype.repeat);
const StringPrototypePadStart = uncurryThis(String.prototype.padStart);
const StringPrototypePadEnd = uncurryThis(String.prototype.padEnd);
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const SymbolPrototypeToString = uncurryThis(Symbol.prototype.toString);
const MapConstructor = Map;
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeSet = uncurryThis(Map.prototype.set);
const MapPrototypeGetSize = uncurryThis(ObjectGetOwnPropertyDescriptor(Map.prototype, "size").get);
const customSymbol = Symbol.for("nodejs.util.inspect.custom");

// Maximum length of one inspection: the text of a graph can be exponentially larger than its heap.
const MAX_CHARS = 1 << 22;

// Filled in by the files 11 and 12: names of objects, text of strings, one function per class of object.
const parts = base.inspectParts = { __proto__: null, kinds: { __proto__: null } };
const isObject = parts.isObject = (value) => value !== null && (typeof value === "object" || typeof value === "function");

const DEFAULTS = {
  __proto__: null, showHidden: false, depth: 2, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000,
  breakLength: 80, compact: 3, sorted: false,
};

// `options` must have no prototype; options of user code are copied with `ownOptions` first.
base.inspect = (value, options = DEFAULTS) => {
  const ctx = { __proto__: null, seen: list(), circular: undefined, indent: 0, deepest: 0, room: MAX_CHARS, uncaught: options.uncaught };
  for (const key in DEFAULTS) ctx[key] = options[key] === undefined ? DEFAULTS[key] : options[key];
  try {
    return formatValue(ctx, value, 0);
  } catch (error) {
    return interrupted("", error);
  }
};

// A copy of user code's options with only the known ones, converted to the expected types.
base.ownOptions = (given) => {
  const options = { __proto__: null };
  if (!isObject(given)) return options;
  for (const key in DEFAULTS) {
    const value = parts.lookup(given, key);
    if (typeof DEFAULTS[key] === "number") {
      if (value === null) options[key] = Infinity;
      else if (typeof value === "number") options[key] = value;
      else if (value === false) options[key] = 0;
    } else if (value !== undefined) {
      options[key] = typeof value === "function" ? value : !!value;
    }
  }
  return options;
};

// The `inspect` function that custom inspection functions of user code receive.
const { inspect: offered } = { inspect(value, options) { return base.inspect(value, base.ownOptions(options)); } };
base.define(offered, "custom", customSymbol);

function formatValue(ctx, value, depth, insideView) {
  if (!isObject(value)) return formatPrimitive(ctx, value);
  let target = value;
  let kind = host.classOf(value);
  let open = "", close = "";
  while (kind === "Proxy") {
    const details = host.proxyDetails(target);
    if (details[0] === null) return `${open}<Revoked Proxy>${close}`;
    if (ctx.showProxy) return formatProxy(ctx, details, depth);
    open += "Proxy(";
    close += ")";
    target = details[0];
    kind = host.classOf(target);
  }
  const custom = ctx.customInspect ? customText(ctx, value, target, depth) : undefined;
  if (custom !== undefined) return custom;
  for (let i = 0; i < ctx.seen.length; i++) if (ctx.seen[i] === target) return circularMark(ctx, target);
  return open + formatObject(ctx, target, kind, depth, insideView) + close;
}

function formatPrimitive(ctx, value) {
  switch (typeof value) {
    case "string": return formatString(ctx, value);
    case "number": return ObjectIs(value, -0) ? "-0" : `${value}`;
    case "bigint": return `${value}n`;
    case "symbol": return SymbolPrototypeToString(value);
    default: return `${value}`;
  }
}

function formatString(ctx, value) {
  let rest = "";
  if (value.length > ctx.maxStringLength) {
    const more = value.length - ctx.maxStringLength;
    rest = `... ${more} more character${more > 1 ? "s" : ""}`;
    value = StringPrototypeSlice(value, 0, ctx.maxStringLength);
  }
  if (value.length <= 16 || value.length <= ctx.breakLength - ctx.indent - 4) return parts.quote(value) + rest;
  const lines = parts.splitLines(value, true);
  for (let i = 0; i < lines.length; i++) lines[i] = parts.quote(lines[i]);
  return ArrayPrototypeJoin(lines, ` +\n${StringPrototypeRepeat(" ", ctx.indent + 2)}`) + rest;
}

function formatProxy(ctx, details, depth) {
  if (depth > ctx.depth) return "Proxy [Array]";
  const output = list();
  ctx.indent += 2;
  for (let i = 0; i < 2; i++) output[i] = formatValue(ctx, details[i], depth + 1);
  ctx.indent -= 2;
  return layout(ctx, output, { __proto__: null, base: "", open: "Proxy [", close: "]", isList: true }, depth + 1);
}

function customText(ctx, value, target, depth) {
  const custom = parts.ownLookup(target, customSymbol);
  if (typeof custom !== "function" || parts.isOwnPrototype(target)) return undefined;
  let result;
  try {
    const { showHidden, customInspect, showProxy, maxArrayLength, maxStringLength, breakLength, compact, sorted } = ctx;
    const options = {
      stylize: (text) => `${text}`, showHidden, depth: ctx.depth, colors: false, customInspect, showProxy, maxArrayLength, maxStringLength,
      breakLength, compact, sorted, getters: false, numericSeparator: false,
    };
    result = ReflectApply(custom, value, [ctx.depth - depth, options, offered]);
  } catch {
    return undefined;
  }
  if (result === value) return undefined;
  if (typeof result !== "string") return formatValue(ctx, result, depth);
  return parts.indentLines(result, StringPrototypeRepeat(" ", ctx.indent));
}

function circularMark(ctx, value) {
  ctx.circular ??= new MapConstructor();
  let index = MapPrototypeGet(ctx.circular, value);
  if (index === undefined) MapPrototypeSet(ctx.circular, value, index = MapPrototypeGetSize(ctx.circular) + 1);
  return `[Circular *${index}]`;
}

// A function in `kinds` fills in the shape: `base` is the text before the braces, `fill` adds entries, `done` is the text if there is no more.
function formatObject(ctx, value, kind, depth, insideView) {
  const { room, indent } = ctx;
  const { length } = ctx.seen;
  const name = parts.constructorName(ctx, value, depth);
  const tag = parts.tagOf(ctx, value);
  const shape = {
    __proto__: null, kind, base: "", open: "{", close: "}", isList: false, keys: undefined, fill: undefined, done: undefined,
  };
  (parts.kinds[kind] ?? parts.kinds.Object)(ctx, value, shape, name, tag, insideView);
  if (shape.done !== undefined) return shape.done;
  const label = StringPrototypeSlice(parts.prefix(name, tag, "Object"), 0, -1);
  if (depth > ctx.depth) return name === null ? label : `[${label}]`;

  const output = list();
  ctx.seen[length] = value;
  ctx.deepest = depth + 1;
  try {
    shape.fill?.(ctx, value, depth + 1, output);
    formatKeys(ctx, value, depth + 1, shape, output);
  } catch (error) {
    ctx.indent = indent;
    return interrupted(label, error);
  } finally {
    ctx.seen.length = length;
  }
  const reference = ctx.circular && MapPrototypeGet(ctx.circular, value);
  if (reference !== undefined && !(ctx.uncaught && length === 0)) {
    shape.base = shape.base === "" ? `<ref *${reference}>` : `<ref *${reference}> ${shape.base}`;
  }
  if (ctx.sorted && !shape.isList) ArrayPrototypeSort(output, typeof ctx.sorted === "function" ? ctx.sorted : undefined);
  const text = layout(ctx, output, shape, depth + 1, value);
  ctx.room = room - text.length;
  return text;
}

// Nesting that exhausts the stack is caught here, at the innermost level that has enough stack left to report it.
function interrupted(label, error) {
  const message = parts.ownText(error, "message");
  return `[${label || "Object"}: Inspection interrupted prematurely. ${message}.]`;
}

// Counts the text that was produced since `room` was read. Returns whether there is room for more.
function add(ctx, output, room, text) {
  output[output.length] = text;
  ctx.room = room - text.length;
  return ctx.room > 0;
}

const more = (count, what) => `... ${count} more ${what}${count > 1 ? "s" : ""}`;

function formatKeys(ctx, value, depth, shape, output) {
  const { keys } = shape;
  for (let i = 0; i < keys.length; i++) {
    if (add(ctx, output, ctx.room, formatProperty(ctx, value, depth, keys[i]))) continue;
    if (i + 1 < keys.length) add(ctx, output, ctx.room, more(keys.length - i - 1, "item"));
    return;
  }
  if (!ctx.showHidden) return;
  parts.inheritedSlots(value, (key, slot) => add(ctx, output, ctx.room, `${keyText(key, false)}: ${formatSlot(ctx, slot, depth)}`));
}

function formatProperty(ctx, value, depth, key) {
  const descriptor = ObjectGetOwnPropertyDescriptor(value, key);
  return `${keyText(key, descriptor.enumerable)}: ${formatSlot(ctx, descriptor, depth)}`;
}

// The value of a property descriptor: accessors are named, never called.
function formatSlot(ctx, descriptor, depth) {
  if (ObjectHasOwn(descriptor, "value")) return formatInner(ctx, descriptor.value, depth);
  if (descriptor.get === undefined) return descriptor.set === undefined ? "undefined" : "[Setter]";
  return descriptor.set === undefined ? "[Getter]" : "[Getter/Setter]";
}

function formatInner(ctx, value, depth, insideView) {
  ctx.indent += 2;
  const text = formatValue(ctx, value, depth, insideView);
  ctx.indent -= 2;
  return text;
}

function keyText(key, enumerable) {
  const text = typeof key === "symbol" ? parts.escape(SymbolPrototypeToString(key)) : key;
  if (!enumerable) return `[${text}]`;
  if (typeof key === "symbol" || parts.isName(key)) return text === "__proto__" ? "['__proto__']" : text;
  return parts.quote(key);
}

// One line if it is short and has at most `compact` inner levels, otherwise one entry (or, in a long list, one row) per line.
function layout(ctx, output, shape, depth, value) {
  const { open, close } = shape;
  const head = shape.base === "" ? open : `${shape.base} ${open}`;
  if (ctx.compact >= 1) {
    const rows = shape.isList && output.length > 6 ? group(ctx, output, value) : output;
    if (ctx.deepest - depth < ctx.compact && rows === output && fitsOnLine(ctx, output, shape)) {
      const line = ArrayPrototypeJoin(output, ", ");
      if (!StringPrototypeIncludes(line, "\n")) return `${head} ${line} ${close}`;
    }
    output = rows;
  }
  const indent = `\n${StringPrototypeRepeat(" ", ctx.indent)}`;
  return `${head}${indent}  ${ArrayPrototypeJoin(output, `,${indent}  `)}${indent}${close}`;
}

function fitsOnLine(ctx, output, shape) {
  let total = 2 * output.length + ctx.indent + shape.open.length + shape.base.length + 10;
  for (let i = 0; i < output.length && total <= ctx.breakLength; i++) total += output[i].length;
  return total <= ctx.breakLength && !StringPrototypeIncludes(shape.base, "\n");
}

// Arranges a long list in columns. The line for omitted entries is not part of the grid.
function group(ctx, output, value) {
  const inGrid = output.length > ctx.maxArrayLength ? output.length - 1 : output.length;
  const widths = list();
  let total = 0, widest = 0;
  for (let i = 0; i < inGrid; i++) {
    widths[i] = parts.width(output[i]);
    total += widths[i] + 2;
    widest = MathMax(widest, widths[i]);
  }
  const cell = widest + 2;
  if (cell * 3 + ctx.indent >= ctx.breakLength || (total / cell <= 5 && widest > 6)) return output;
  const typical = MathMax(cell - 3 - MathSqrt(cell - total / output.length), 1);
  const columns = MathMin(
    MathRound(MathSqrt(2.5 * typical * inGrid) / typical), MathFloor((ctx.breakLength - ctx.indent) / cell), ctx.compact * 4, 15);
  if (columns <= 1) return output;
  const columnWidths = list();
  for (let i = 0; i < inGrid; i++) columnWidths[i % columns] = MathMax(columnWidths[i % columns] ?? 0, widths[i]);
  const pad = allNumeric(value, output.length) ? StringPrototypePadStart : StringPrototypePadEnd;
  const rows = list();
  let row = "";
  for (let i = 0; i < inGrid; i++) {
    const column = i % columns;
    const last = column === columns - 1 || i === inGrid - 1;
    const size = columnWidths[column] + output[i].length - widths[i];
    if (last) {
      rows[rows.length] = row + (pad === StringPrototypePadStart ? pad(output[i], size) : output[i]);
      row = "";
    } else {
      row += pad(`${output[i]}, `, size + 2);
    }
  }
  if (inGrid < output.length) rows[rows.length] = output[inGrid];
  return rows;
}

function allNumeric(value, length) {
  for (let i = 0; i < length; i++) {
    const descriptor = value === undefined ? undefined : ObjectGetOwnPropertyDescriptor(value, i);
    if (descriptor === undefined || !ObjectHasOwn(descriptor, "value")) return false;
    if (typeof descriptor.value !== "number" && typeof descriptor.value !== "bigint") return false;
  }
  return true;
}

// The keys that are shown as properties: enumerable ones, strings first; all of them with `showHidden`.
parts.keysOf = (ctx, value) => {
  if (ctx.showHidden) return ReflectOwnKeys(value);
  const keys = ObjectKeys(value);
  const symbols = ObjectGetOwnPropertySymbols(value);
  if (symbols.length === 0) return keys;
  const all = list();
  for (let i = 0; i < keys.length; i++) all[i] = keys[i];
  for (let i = 0; i < symbols.length; i++) {
    if (ObjectPrototypePropertyIsEnumerable(value, symbols[i])) all[all.length] = symbols[i];
  }
  return all;
};
parts.formatValue = formatValue;
parts.formatPrimitive = formatPrimitive;
parts.formatInner = formatInner;
parts.formatSlot = formatSlot;
parts.layout = layout;
parts.add = add;
parts.more = more;
