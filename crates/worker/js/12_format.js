// Formats several values as one text, with the % directives of Node's util.format.
const { uncurryThis, inspectParts: parts } = base;
const { isObject } = parts;
const { is: ObjectIs } = Object;
const { stringify: JSONStringify } = JSON;
const { parseInt: NumberParseInt, parseFloat: NumberParseFloat } = Number;
const FunctionPrototypeToString = uncurryThis(Function.prototype.toString);
const NumberConstructor = Number;
const StringConstructor = String;
const StringPrototypeIndexOf = uncurryThis(String.prototype.indexOf);
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const StringPrototypeStartsWith = uncurryThis(String.prototype.startsWith);
const SymbolToPrimitive = Symbol.toPrimitive;

const SHALLOW = { __proto__: null, depth: 0 };
const THOROUGH = { __proto__: null, showHidden: true, showProxy: true, depth: 4 };

const numberText = (value) => ObjectIs(value, -0) ? "-0" : `${value}`;

// The result of an object's own conversion to a string, or a replacement text if that throws.
function attempt(convert, value, otherwise) {
  try {
    return convert(value);
  } catch {
    return otherwise(value);
  }
}

const directives = {
  __proto__: null,
  s(value) {
    if (typeof value === "number") return numberText(value);
    if (typeof value === "bigint") return `${value}n`;
    if (isObject(value) && !saysItself(value)) return typeof value === "function" ? sourceOf(value) : base.inspect(value, SHALLOW);
    return attempt(StringConstructor, value, base.inspect);
  },
  d: (value) => toNumber(value, NumberConstructor),
  i: (value) => toNumber(value, NumberParseInt),
  f: (value) => typeof value === "symbol" ? "NaN" : numberText(attempt(NumberParseFloat, value, () => NaN)),
  j: (value) => {
    try {
      return JSONStringify(value) ?? "undefined";
    } catch (error) {
      const circular = StringPrototypeStartsWith(parts.ownText(error, "message"), "Converting circular structure");
      return circular ? "[Circular]" : base.inspect(value);
    }
  },
  o: (value) => base.inspect(value, THOROUGH),
  O: (value) => base.inspect(value),
  c: () => "",
};

function toNumber(value, convert) {
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "symbol" ? "NaN" : numberText(attempt(convert, value, () => NaN));
}

// Whether an object has a conversion to a string that is not built in.
function saysItself(value) {
  if (host.classOf(value) === "Proxy") return false;
  return typeof parts.ownLookup(value, SymbolToPrimitive) === "function" || typeof parts.ownLookup(value, "toString") === "function";
}
const sourceOf = (value) => attempt(FunctionPrototypeToString, parts.solid(value), () => base.inspect(value));

const plain = (value) => typeof value === "string" ? value : base.inspect(value);

base.formatAll = (values) => {
  if (values.length === 0) return "";
  const first = values[0];
  if (values.length === 1) return plain(first);
  let text = "", used = 1;
  if (typeof first === "string") {
    let from = 0;
    for (let at = 0; (at = StringPrototypeIndexOf(first, "%", at)) !== -1 && at + 1 < first.length; at += 2) {
      const letter = first[at + 1];
      const directive = directives[letter];
      if (letter !== "%" && (directive === undefined || used === values.length)) {
        at--;
        continue;
      }
      text += StringPrototypeSlice(first, from, at) + (letter === "%" ? "%" : directive(values[used++]));
      from = at + 2;
    }
    text += StringPrototypeSlice(first, from);
  } else {
    text = base.inspect(first);
  }
  for (; used < values.length; used++) text += ` ${plain(values[used])}`;
  return text;
};
base.format = (...values) => base.formatAll(values);
