// The global `console`: every method writes lines to the output of the run, formatted as Node does.
const { uncurryThis, list, inspectParts: parts, formatAll } = base;
const { isObject } = parts;
const { defineProperty: ObjectDefineProperty, keys: ObjectKeys, hasOwn: ObjectHasOwn } = Object;
const ErrorCaptureStackTrace = Error.captureStackTrace;
const ArrayIsArray = Array.isArray;
const { floor: MathFloor, max: MathMax, min: MathMin } = Math;
const MapConstructor = Map;
const MapPrototypeClear = uncurryThis(Map.prototype.clear);
const MapPrototypeDelete = uncurryThis(Map.prototype.delete);
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeSet = uncurryThis(Map.prototype.set);
const NumberPrototypeToFixed = uncurryThis(Number.prototype.toFixed);
const StringPrototypePadStart = uncurryThis(String.prototype.padStart);
const StringPrototypeRepeat = uncurryThis(String.prototype.repeat);

// Deeper groups are not indented further, and larger tables are not drawn.
const MAX_INDENT_LEVELS = 500;
const MAX_TABLE_CHARS = 1 << 22;
const MAX_TABLE_ROWS = MAX_TABLE_CHARS / 16;

let level = 0;
let indent = "";
const counts = new MapConstructor();
const timers = new MapConstructor();
base.onBegin(() => {
  setLevel(0);
  MapPrototypeClear(counts);
  MapPrototypeClear(timers);
});

function setLevel(to) {
  level = to;
  indent = StringPrototypeRepeat("  ", MathMin(level, MAX_INDENT_LEVELS));
}

function write(text) {
  host.output(indent === "" ? `${text}\n` : `${indent}${parts.indentLines(text, indent)}\n`);
}
const writeAll = (values) => write(values.length === 1 && typeof values[0] === "string" ? values[0] : formatAll(values));
const warn = (text) => write(`Warning: ${text}`);

function openGroup(values) {
  if (values.length > 0) writeAll(values);
  setLevel(level + 1);
}

// Rethrows what the label's conversion throws, as Node does.
const labelOf = (label) => `${label}`;

// The values from an index on, preceded by another one.
function after(first, values, from) {
  const all = list();
  all[0] = first;
  for (let i = from; i < values.length; i++) all[i - from + 1] = values[i];
  return all;
}

function logTime(method, label, values) {
  const begun = MapPrototypeGet(timers, label);
  if (begun === undefined) return warn(`No such label '${label}' for console.${method}()`);
  writeAll(after(`${label}: ${durationText(host.now() - begun)}`, values, 0));
}

function durationText(ms) {
  if (ms < 1000) return `${+NumberPrototypeToFixed(ms, 3)}ms`;
  if (ms < 60000) return `${NumberPrototypeToFixed(ms / 1000, 3)}s`;
  const minutes = MathFloor(ms / 60000);
  const seconds = StringPrototypePadStart(NumberPrototypeToFixed((ms % 60000) / 1000, 3), 6, "0");
  if (minutes < 60) return `${minutes}:${seconds} (m:ss.mmm)`;
  return `${MathFloor(minutes / 60)}:${StringPrototypePadStart(`${minutes % 60}`, 2, "0")}:${seconds} (h:mm:ss.mmm)`;
}

// In Node's order, with Node's properties: no `this`, no `prototype`, a `length` of 0 (hence the default values).
const methods = {
  __proto__: {},
  log(...values) { writeAll(values); },
  info(...values) { writeAll(values); },
  debug(...values) { writeAll(values); },
  warn(...values) { writeAll(values); },
  error(...values) { writeAll(values); },
  dir(value = undefined, options) {
    write(base.inspect(value, { __proto__: null, customInspect: false, ...base.ownOptions(options) }));
  },
  time(label = "default") {
    label = labelOf(label);
    if (MapPrototypeGet(timers, label) !== undefined) return warn(`Label '${label}' already exists for console.time()`);
    MapPrototypeSet(timers, label, host.now());
  },
  timeEnd(label = "default") {
    label = labelOf(label);
    logTime("timeEnd", label, []);
    MapPrototypeDelete(timers, label);
  },
  timeLog(label = "default", ...values) { logTime("timeLog", labelOf(label), values); },
  trace(...values) {
    const holder = { __proto__: null };
    ErrorCaptureStackTrace(holder, trace);
    const text = formatAll(values);
    write(`Trace${text === "" ? "" : `: ${text}`}${base.framesOf(holder)}`);
  },
  assert(condition = false, ...values) {
    if (condition) return;
    if (typeof values[0] === "string") writeAll(after(`Assertion failed: ${values[0]}`, values, 1));
    else writeAll(after("Assertion failed", values, 0));
  },
  clear() {},
  count(label = "default") {
    label = labelOf(label);
    const count = (MapPrototypeGet(counts, label) ?? 0) + 1;
    MapPrototypeSet(counts, label, count);
    write(`${label}: ${count}`);
  },
  countReset(label = "default") {
    label = labelOf(label);
    if (!MapPrototypeDelete(counts, label)) warn(`Count for '${label}' does not exist`);
  },
  group(...values) { openGroup(values); },
  groupEnd() { setLevel(MathMax(0, level - 1)); },
  table(data = undefined, columns) {
    if (columns !== undefined && !ArrayIsArray(columns)) {
      throw base.wrongType('"properties" argument', "an instance of Array", columns);
    }
    const subject = unwrap(data);
    const table = isObject(subject) && typeof subject !== "function" ? tableOf(subject, columns) : undefined;
    write((table && drawTable(table)) ?? formatAll(after(data, [], 0)));
  },
  dirxml(...values) { writeAll(values); },
  groupCollapsed(...values) { openGroup(values); },
};
const { trace } = methods;
ObjectDefineProperty(methods, Symbol.toStringTag, { __proto__: null, value: "console", configurable: true });
base.console = methods;
base.expose("console", methods);

const unwrap = (value) => isObject(value) ? parts.solid(value) : value;

// A table is a list of columns: { title, cells }, the index first. Undefined if it would be too large to be useful.
function tableOf(data, columns) {
  const kind = host.classOf(data);
  const iterated = kind === "Map" || kind === "Set" || kind === "MapIterator" || kind === "SetIterator";
  if (iterated) return iterationTable(host.previewEntries(data));
  const byKey = { __proto__: null };
  const keys = ObjectKeys(data);
  if (keys.length > MAX_TABLE_ROWS) return undefined;
  const values = column("Values");
  const index = column("(index)");
  for (let row = 0; row < keys.length; row++) {
    index.cells[row] = keys[row];
    const item = unwrap(parts.lookup(data, keys[row]));
    const fields = columns ?? (isObject(item) ? ObjectKeys(item) : []);
    if (!isObject(item) && columns === undefined) values.cells[row] = cellText(item);
    for (let i = 0; i < fields.length; i++) {
      // In Node such a column has no title and is not drawn.
      if (typeof fields[i] === "symbol") continue;
      const field = labelOf(fields[i]);
      byKey[field] ??= column(field);
      if (isObject(item) && ObjectHasOwn(item, field)) byKey[field].cells[row] = cellText(parts.lookup(item, field));
    }
  }
  const table = { __proto__: null, rows: keys.length, columns: list() };
  table.columns[0] = index;
  for (const key in byKey) table.columns[table.columns.length] = byKey[key];
  if (values.cells.length > 0) table.columns[table.columns.length] = values;
  return table;
}

const column = (title) => ({ __proto__: null, title, cells: list() });

function iterationTable(preview) {
  const entries = preview[0];
  const step = preview[1] ? 2 : 1;
  const table = { __proto__: null, rows: entries.length / step, columns: list() };
  if (table.rows > MAX_TABLE_ROWS) return undefined;
  const index = table.columns[0] = column("(iteration index)");
  if (step === 2) table.columns[1] = column("Key");
  const values = table.columns[step] = column("Values");
  for (let row = 0; row < table.rows; row++) {
    index.cells[row] = `${row}`;
    if (step === 2) table.columns[1].cells[row] = cellText(entries[2 * row]);
    values.cells[row] = cellText(entries[step * row + step - 1]);
  }
  return table;
}

// Of objects with more than two properties, only the name is shown.
function cellText(value) {
  const inner = unwrap(value);
  const large = isObject(inner) && typeof inner === "object" && !ArrayIsArray(inner) && ObjectKeys(inner).length > 2;
  return base.inspect(value, { __proto__: null, maxArrayLength: 3, breakLength: Infinity, depth: large ? -1 : 0 });
}

function drawTable({ rows, columns }) {
  let total = 1;
  for (let i = 0; i < columns.length; i++) {
    let width = parts.width(columns[i].title);
    for (let row = 0; row < rows; row++) width = MathMax(width, parts.width(columns[i].cells[row] ?? ""));
    columns[i].width = width;
    total += width + 3;
  }
  if (total * (rows + 4) > MAX_TABLE_CHARS) return undefined;
  let text = `${rule(columns, "\u250c", "\u252c", "\u2510")}\n${line(columns, (one) => one.title)}\n`;
  text += `${rule(columns, "\u251c", "\u253c", "\u2524")}\n`;
  for (let row = 0; row < rows; row++) text += `${line(columns, (one) => one.cells[row] ?? "")}\n`;
  return text + rule(columns, "\u2514", "\u2534", "\u2518");
}

function rule(columns, left, middle, right) {
  let text = left;
  for (let i = 0; i < columns.length; i++) text += (i === 0 ? "" : middle) + StringPrototypeRepeat("\u2500", columns[i].width + 2);
  return text + right;
}

function line(columns, cellOf) {
  let text = "\u2502";
  for (let i = 0; i < columns.length; i++) {
    const cell = cellOf(columns[i]);
    text += ` ${cell}${StringPrototypeRepeat(" ", columns[i].width - parts.width(cell))} \u2502`;
  }
  return text;
}
