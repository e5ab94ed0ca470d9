// Stack traces: with positions in the author's source where code was generated (TypeScript enums, for example), and safe from user code.
const { uncurryThis } = base;
const { Error } = globalThis;
const ErrorPrototypeToString = uncurryThis(Error.prototype.toString);
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeSet = uncurryThis(Map.prototype.set);
const StringPrototypeReplaceAll = uncurryThis(String.prototype.replaceAll);
const WeakMapPrototypeGet = uncurryThis(WeakMap.prototype.get);
const WeakMapPrototypeSet = uncurryThis(WeakMap.prototype.set);
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);
const ReflectApply = Reflect.apply;
const { create: ObjectCreate, getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor } = Object;

// V8's accessors for frames and stacks, captured before user code could replace them.
const { callSite, stackGetter } = (() => {
  Error.stackTraceLimit = 1;
  Error.prepareStackTrace = (_, sites) => sites[0];
  const error = new Error();
  const site = error.stack;
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;
  return { callSite: Object.getPrototypeOf(site), stackGetter: ObjectGetOwnPropertyDescriptor(error, "stack").get };
})();
const toText = uncurryThis(callSite.toString);
const nameOf = uncurryThis(callSite.getScriptNameOrSourceURL);
const lineOf = uncurryThis(callSite.getLineNumber);
const columnOf = uncurryThis(callSite.getColumnNumber);

// Script name → [shown name, segments]; a segment is four numbers, all from 1: generated line and column, the author's line and column.
const generated = new Map();
const WIDTH = 4;

base.addPositions = (name, shown, segments) => { MapPrototypeSet(generated, name, [shown, segments]); };

// The last segment at or before the position. On a line without segments, positions are already those of the author's source.
function original(segments, line, column) {
  let low = 0;
  let high = segments.length / WIDTH;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = middle * WIDTH;
    if (segments[at] < line || (segments[at] === line && segments[at + 1] <= column)) low = middle + 1;
    else high = middle;
  }
  const at = (low - 1) * WIDTH;
  if (low === 0 || segments[at] !== line) return [line, column];
  return [segments[at + 2], segments[at + 3] + column - segments[at + 1]];
}

// The position of a frame in the author's source.
function place(site) {
  const name = nameOf(site);
  const found = MapPrototypeGet(generated, name);
  const line = lineOf(site);
  const column = columnOf(site);
  if (found === undefined) return { __proto__: null, name, line, column, text: toText(site) };
  const position = original(found[1], line, column);
  const text = StringPrototypeReplaceAll(toText(site), `${name}:${line}:${column}`, () => `${found[0]}:${position[0]}:${position[1]}`);
  return { __proto__: null, name: found[0], line: position[0], column: position[1], text };
}

function header(error) {
  try {
    return ErrorPrototypeToString(error);
  } catch {
    return "<error>";
  }
}

// Call sites for user code: copies, because V8's own refer to frames that can't be saved.
const SAID = ["getTypeName", "getFunctionName", "getMethodName", "getEvalOrigin", "isToplevel", "isEval", "isNative", "isConstructor", "isAsync", "isPromiseAll",
  "getPromiseIndex"];
const asked = SAID.map((name) => [name, uncurryThis(callSite[name])]);
class CallSite {}
const { prototype } = CallSite;
const facts = new WeakMap();
const factsOf = (site) => WeakMapPrototypeGet(facts, site);
for (let i = 0; i < asked.length; i++) {
  const name = asked[i][0];
  base.define(prototype, name, { [name]() { return factsOf(this)[name]; } }[name]);
}
for (const [name, fact] of [["getFileName", "name"], ["getScriptNameOrSourceURL", "name"], ["getLineNumber", "line"], ["getColumnNumber", "column"],
  ["toString", "text"]]) {
  base.define(prototype, name, { [name]() { return factsOf(this)[fact]; } }[name]);
}
for (const name of ["getThis", "getFunction"]) base.define(prototype, name, { [name]() { return undefined; } }[name]);

function copy(site) {
  const own = place(site);
  for (let i = 0; i < asked.length; i++) own[asked[i][0]] = asked[i][1](site);
  const made = ObjectCreate(prototype);
  WeakMapPrototypeSet(facts, made, own);
  return made;
}

// While the host itself reads a stack, Error.prepareStackTrace of user code is ignored.
let truly = false;

base.prepareStackTrace = (error, sites) => {
  const theirs = truly ? undefined : Error.prepareStackTrace;
  if (typeof theirs === "function") {
    const copies = [];
    for (let i = 0; i < sites.length; i++) base.define(copies, i, copy(sites[i]));
    return ReflectApply(theirs, Error, [error, copies]);
  }
  let text = header(error);
  for (let i = 0; i < sites.length; i++) text += `\n    at ${place(sites[i]).text}`;
  return text;
};

// The stack that V8 captured, or a value that replaced it. A getter that user code defined is not called.
base.stackOf = (error) => {
  const descriptor = ObjectGetOwnPropertyDescriptor(error, "stack");
  if (descriptor === undefined) return undefined;
  if (hasOwn(descriptor, "value")) return descriptor.value;
  if (descriptor.get !== stackGetter) return undefined;
  truly = true;
  try {
    return ReflectApply(stackGetter, error, []);
  } finally {
    truly = false;
  }
};
