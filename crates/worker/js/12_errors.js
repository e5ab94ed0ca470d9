// Inspection of errors: the stack without frames of the base heap, the class name, and as properties what the header does not contain.
const { uncurryThis, list, inspectParts: parts } = base;
const { getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor } = Object;
const ArrayIsArray = Array.isArray;
const StringPrototypeEndsWith = uncurryThis(String.prototype.endsWith);
const StringPrototypeIncludes = uncurryThis(String.prototype.includes);
const StringPrototypeIndexOf = uncurryThis(String.prototype.indexOf);
const StringPrototypeRepeat = uncurryThis(String.prototype.repeat);
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const StringPrototypeStartsWith = uncurryThis(String.prototype.startsWith);

const FRAME = "\n    at ";
// Prefix of the names of the base heap's scripts.
const OURS = "heapstead:";

// Own keys, and `cause` and `errors` even if they are not enumerable.
parts.errorKeys = (ctx, error) => {
  const own = parts.keysOf(ctx, error);
  const keys = list();
  for (let i = 0; i < own.length; i++) keys[i] = own[i];
  if (ctx.showHidden) return keys;
  if (isHidden(error, "cause")) keys[keys.length] = "cause";
  if (isHidden(error, "errors") && ArrayIsArray(parts.ownValue(error, "errors"))) keys[keys.length] = "errors";
  return keys;
};
function isHidden(error, key) {
  const descriptor = ObjectGetOwnPropertyDescriptor(error, key);
  return descriptor !== undefined && !descriptor.enumerable;
}

parts.errorText = (ctx, error, shape, name, tag) => {
  const uncaught = ctx.uncaught && ctx.seen.length === 0;
  const own = parts.lookup(error, "name");
  const called = typeof own === "string" ? own : "Error";
  const message = parts.lookup(error, "message");
  let text = stackOf(ctx, error, own, message);
  shape.keys = withoutSaid(ctx, error, shape.keys, text);

  const said = typeof message === "string" ? StringPrototypeIndexOf(text, message) : -1;
  const at = StringPrototypeIndexOf(text, FRAME, said === -1 ? 0 : said + message.length);
  let head = at === -1 ? text : StringPrototypeSlice(text, 0, at);
  if (!uncaught) head = improve(head, called, name, tag);
  if (at === -1) {
    text = uncaught || head === "[object Error]" ? head : `[${head}]`;
  } else {
    text = head + framesText(framesOf(StringPrototypeSlice(text, at + 1)), causeFrames(error));
  }
  if (text.length > ctx.room) text = `${StringPrototypeSlice(text, 0, ctx.room)}${parts.more(text.length - ctx.room, "character")}`;
  return parts.indentLines(text, StringPrototypeRepeat(" ", ctx.indent));
};

// The stack with a header for the current message: V8 records the message when the error is created.
function stackOf(ctx, error, name, message) {
  const stack = base.stackOf(error);
  const header = headerOf(name, message);
  if (typeof stack === "string" && stack !== "") {
    const called = parts.asText(name ?? "Error");
    const at = StringPrototypeIndexOf(stack, FRAME);
    const head = at === -1 ? stack : StringPrototypeSlice(stack, 0, at);
    if (at === -1 || typeof message !== "string" || StringPrototypeIncludes(stack, message)) return head === "" ? header + stack : stack;
    return StringPrototypeStartsWith(head, called) ? header + StringPrototypeSlice(stack, at) : stack;
  }
  if (stack === undefined || stack === null || stack === "") return header;
  return `${header}\n    ${parts.formatValue(ctx, stack, ctx.depth)}`;
}

// Like Error.prototype.toString, but never empty.
function headerOf(name, message) {
  if (typeof name === "symbol" || typeof message === "symbol") return "[object Error]";
  const called = name === undefined ? "Error" : parts.asText(name);
  const said = message === undefined ? "" : parts.asText(message);
  if (said === "") return called === "" ? "Error" : called;
  return called === "" ? said : `${called}: ${said}`;
}

// Own `name`, `message` and `stack` are left out if the text contains them.
function withoutSaid(ctx, error, keys, text) {
  if (ctx.showHidden) return keys;
  const rest = list();
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if ((key !== "name" && key !== "message" && key !== "stack") || !isSaid(parts.lookup(error, key), text)) rest[rest.length] = key;
  }
  return rest;
}

const isSaid = (value, text) => typeof value === "string" ? StringPrototypeIncludes(text, value) : typeof value !== "symbol";

// `Error: x` of a class Foo becomes `Foo [Error]: x`, that of a FooError becomes `FooError: x`.
function improve(head, called, name, tag) {
  const next = head[called.length];
  const standard = StringPrototypeEndsWith(called, "Error") && StringPrototypeStartsWith(head, called) &&
    (next === undefined || next === ":" || next === "\n");
  if (name !== null && !standard) return head;
  const length = standard ? called.length : wordLength(head);
  const kind = name === null ? StringPrototypeSlice(head, 0, length) || "Error" : "Error";
  const prefix = StringPrototypeSlice(parts.prefix(name, tag, kind), 0, -1);
  if (prefix === called) return head;
  const rest = length === 0 ? `: ${head}` : StringPrototypeSlice(head, length);
  return StringPrototypeIncludes(prefix, called) ? prefix + rest : `${prefix} [${called}]${rest}`;
}
function wordLength(head) {
  const end = StringPrototypeIndexOf(head, ":");
  const word = end === -1 ? head : StringPrototypeSlice(head, 0, end);
  return parts.isName(word) ? word.length : 0;
}

// The frames of a stack, without those of the base heap.
function framesOf(text) {
  const lines = parts.splitLines(text);
  const frames = list();
  for (let i = 0; i < lines.length; i++) if (!isOurs(lines[i])) frames[frames.length] = lines[i];
  return frames;
}
const isOurs = (line) => StringPrototypeStartsWith(line, "    at ") &&
  (StringPrototypeIncludes(line, `(${OURS}`) || StringPrototypeStartsWith(line, `    at ${OURS}`) ||
   StringPrototypeStartsWith(line, `    at async ${OURS}`));

function causeFrames(error) {
  const cause = parts.ownValue(error, "cause");
  if (cause === null || typeof cause !== "object" || host.classOf(cause) !== "Error") return list();
  const stack = base.stackOf(cause);
  const at = typeof stack === "string" ? StringPrototypeIndexOf(stack, FRAME) : -1;
  return at === -1 ? list() : framesOf(StringPrototypeSlice(stack, at + 1));
}

// Of four or more consecutive frames that the cause has too, only the first and the last are shown.
function framesText(frames, cause) {
  for (let i = 0; i < frames.length; i++) {
    let at = 0;
    while (at < cause.length && cause[at] !== frames[i]) at++;
    let same = 0;
    while (i + same < frames.length && at + same < cause.length && frames[i + same] === cause[at + same]) same++;
    if (same <= 3) continue;
    let text = linesFrom(frames, 0, i + 1);
    text += `\n    ... ${same - 2} lines matching cause stack trace ...`;
    return text + linesFrom(frames, i + same - 1, frames.length);
  }
  return linesFrom(frames, 0, frames.length);
}
function linesFrom(lines, from, to) {
  let text = "";
  for (let i = from; i < to; i++) text += `\n${lines[i]}`;
  return text;
}

// The caller's frames only, one per line: for stacks that do not belong to an error.
base.framesOf = (holder) => {
  const stack = base.stackOf(holder);
  const at = typeof stack === "string" ? StringPrototypeIndexOf(stack, FRAME) : -1;
  return at === -1 ? "" : framesText(framesOf(StringPrototypeSlice(stack, at + 1)), list());
};
