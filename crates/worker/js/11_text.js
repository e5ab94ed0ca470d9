// Text in inspections: quotes and escapes, lines, and the width of a string on a terminal.
const { uncurryThis, list, inspectParts: parts } = base;
const NumberPrototypeToString = uncurryThis(Number.prototype.toString);
const RegExpPrototypeExec = uncurryThis(RegExp.prototype.exec);
const StringFromCodePoint = String.fromCodePoint;
const StringPrototypeCharCodeAt = uncurryThis(String.prototype.charCodeAt);
const StringPrototypeCodePointAt = uncurryThis(String.prototype.codePointAt);
const StringPrototypeIncludes = uncurryThis(String.prototype.includes);
const StringPrototypeIndexOf = uncurryThis(String.prototype.indexOf);
const StringPrototypePadStart = uncurryThis(String.prototype.padStart);
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const StringPrototypeToUpperCase = uncurryThis(String.prototype.toUpperCase);

const QUOTE = 39, BACKSLASH = 92;
const SHORT = { __proto__: null, 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 39: "\\'", 92: "\\\\" };

// The escape sequence for the code unit at `at`, or undefined if it needs none.
function escapeOf(text, at, quote) {
  const code = StringPrototypeCharCodeAt(text, at);
  if (code === quote || code === BACKSLASH || code < 32) return SHORT[code] ?? hexEscape(code);
  if (code < 127) return undefined;
  if (code < 160) return hexEscape(code);
  if (code < 0xd800 || code > 0xdfff) return undefined;
  const inPair = code < 0xdc00
    ? isBetween(StringPrototypeCharCodeAt(text, at + 1), 0xdc00, 0xdfff)
    : isBetween(StringPrototypeCharCodeAt(text, at - 1), 0xd800, 0xdbff);
  return inPair ? undefined : `\\u${NumberPrototypeToString(code, 16)}`;
}
const isBetween = (code, low, high) => code >= low && code <= high;
const hexEscape = (code) => `\\x${StringPrototypePadStart(StringPrototypeToUpperCase(NumberPrototypeToString(code, 16)), 2, "0")}`;

function escape(text, quote) {
  let done = "", from = 0;
  for (let i = 0; i < text.length; i++) {
    const escaped = escapeOf(text, i, quote);
    if (escaped === undefined) continue;
    done += StringPrototypeSlice(text, from, i) + escaped;
    from = i + 1;
  }
  return from === 0 ? text : done + StringPrototypeSlice(text, from);
}
parts.escape = (text) => escape(text, QUOTE);

// Single quotes, unless other quotes avoid escaping.
parts.quote = (text) => {
  if (!StringPrototypeIncludes(text, "'")) return `'${escape(text)}'`;
  if (!StringPrototypeIncludes(text, '"')) return `"${escape(text)}"`;
  if (!StringPrototypeIncludes(text, "`") && !StringPrototypeIncludes(text, "${")) return `\`${escape(text)}\``;
  return `'${escape(text, QUOTE)}'`;
};

// Keys that need no quotes: ASCII letters, digits and underscores, not starting with a digit.
parts.isName = (text) => {
  for (let i = 0; i < text.length; i++) {
    const code = StringPrototypeCharCodeAt(text, i);
    const letter = isBetween(code, 97, 122) || isBetween(code, 65, 90) || code === 95;
    if (!letter && (i === 0 || !isBetween(code, 48, 57))) return false;
  }
  return text !== "";
};

// String.prototype.split and replaceAll call methods that user code can define.
parts.splitLines = (text, keepEnds) => {
  const lines = list();
  let from = 0;
  for (let end; (end = StringPrototypeIndexOf(text, "\n", from)) !== -1; from = end + 1) {
    lines[lines.length] = StringPrototypeSlice(text, from, keepEnds ? end + 1 : end);
  }
  if (!keepEnds || from < text.length) lines[lines.length] = StringPrototypeSlice(text, from);
  return lines;
};
parts.indentLines = (text, indent) => {
  if (indent === "" || !StringPrototypeIncludes(text, "\n")) return text;
  const lines = parts.splitLines(text);
  let all = lines[0];
  for (let i = 1; i < lines.length; i++) all += `\n${indent}${lines[i]}`;
  return all;
};

const WIDE = new RegExp(
  "[\\u1100-\\u115f\\u2329\\u232a\\u2630-\\u2637\\u268a-\\u268f\\u2e80-\\u303e\\u3041-\\ua4c6\\ua960-\\ua97c\\uac00-\\ud7a3" +
  "\\uf900-\\ufaff\\ufe10-\\ufe19\\ufe30-\\ufe6b\\uff01-\\uff60\\uffe0-\\uffe6\\u{16fe0}-\\u{18df2}\\u{1aff0}-\\u{1b2fb}" +
  "\\u{1d300}-\\u{1d376}\\u{1f200}-\\u{1f265}\\u{20000}-\\u{3fffd}\\p{Emoji_Presentation}]", "u");
const WIDTHLESS = /[\p{Mn}\p{Me}\p{Cf}\p{Cc}]/u;

function widthOf(code) {
  if (code < 127) return code < 32 ? 0 : 1;
  const char = StringFromCodePoint(code);
  if (code >= 0x1100 && RegExpPrototypeExec(WIDE, char) !== null) return 2;
  return code !== 0xad && RegExpPrototypeExec(WIDTHLESS, char) !== null ? 0 : 1;
}
parts.width = (text) => {
  let width = 0;
  for (let i = 0; i < text.length; i++) {
    const code = StringPrototypeCodePointAt(text, i);
    if (code > 0xffff) i++;
    width += widthOf(code);
  }
  return width;
};
