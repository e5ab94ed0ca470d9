// Stack traces in the author's positions, for code that was generated from the author's (TypeScript enums and the like).
const { uncurryThis } = base;
const { Error } = globalThis;
const ErrorPrototypeToString = uncurryThis(Error.prototype.toString);
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeSet = uncurryThis(Map.prototype.set);
const StringPrototypeReplaceAll = uncurryThis(String.prototype.replaceAll);
const ReflectApply = Reflect.apply;

// What V8 says of a frame, reached past anything user code could put in its way.
const callSite = (() => {
  Error.stackTraceLimit = 1;
  Error.prepareStackTrace = (_, sites) => sites[0];
  const site = new Error().stack;
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;
  return Object.getPrototypeOf(site);
})();
const toText = uncurryThis(callSite.toString);
const nameOf = uncurryThis(callSite.getScriptNameOrSourceURL);
const lineOf = uncurryThis(callSite.getLineNumber);
const columnOf = uncurryThis(callSite.getColumnNumber);

// Script name → [shown name, segments]; a segment is four numbers, all from 1: generated line and column, the author's line and column.
const generated = new Map();
const WIDTH = 4;

base.addPositions = (name, shown, segments) => { MapPrototypeSet(generated, name, [shown, segments]); };
base.hasPositions = () => generated.size > 0;

// The last segment at or before the position; on a line without one positions are the author's already.
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

function frame(site) {
  const text = toText(site);
  const name = nameOf(site);
  const found = MapPrototypeGet(generated, name);
  if (found === undefined) return text;
  const line = lineOf(site);
  const column = columnOf(site);
  const position = original(found[1], line, column);
  return StringPrototypeReplaceAll(text, `${name}:${line}:${column}`, () => `${found[0]}:${position[0]}:${position[1]}`);
}

function header(error) {
  try {
    return ErrorPrototypeToString(error);
  } catch {
    return "<error>";
  }
}

base.prepareStackTrace = (error, sites) => {
  const theirs = Error.prepareStackTrace;
  if (typeof theirs === "function") return ReflectApply(theirs, Error, [error, sites]);
  let text = header(error);
  for (let i = 0; i < sites.length; i++) text += `\n    at ${frame(sites[i])}`;
  return text;
};
