// atob and btoa.
const { uncurryThis, DOMException } = base;
const { ArrayBuffer, Uint16Array, Uint8Array } = globalThis;
const StringPrototypeCharCodeAt = uncurryThis(String.prototype.charCodeAt);

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const digits = new Uint8Array(128).fill(255);
for (let i = 0; i < 64; i++) digits[alphabet.charCodeAt(i)] = i;
const letters = new Uint8Array(64).map((_, i) => alphabet.charCodeAt(i));

const EQUALS = 61;
const isSpace = (code) => code === 32 || code === 9 || code === 10 || code === 12 || code === 13;
const refuse = (message) => { throw new DOMException(message, "InvalidCharacterError"); };

// Collects six bits per character. The result is built as UTF-16, in which every byte is a character.
function decode(text) {
  const buffer = new ArrayBuffer(2 * text.length);
  const units = new Uint16Array(buffer);
  let written = 0, count = 0, padding = 0, bits = 0;
  for (let i = 0; i < text.length; i++) {
    const code = StringPrototypeCharCodeAt(text, i);
    if (isSpace(code)) continue;
    if (code === EQUALS) {
      padding++;
      continue;
    }
    if (padding > 0) refuse("The string to be decoded is not correctly encoded.");
    const digit = code < 128 ? digits[code] : 255;
    if (digit === 255) refuse("Invalid character");
    bits = (bits << 6 | digit) & 0xffffff;
    count++;
    const spare = count * 6 % 8;
    if (spare !== 6) units[written++] = bits >> spare & 255;
  }
  if (count % 4 === 1 || padding > 2 || (padding > 0 && (count + padding) % 4 !== 0)) {
    refuse("The string to be decoded is not correctly encoded.");
  }
  return host.decode("utf-16le", new Uint8Array(buffer, 0, 2 * written), false, true);
}

function encode(text) {
  const { length } = text;
  const out = new Uint8Array((length + 2 - (length + 2) % 3) / 3 * 4);
  let at = 0;
  for (let i = 0; i < length; i += 3) {
    let bits = 0;
    for (let j = 0; j < 3; j++) {
      const code = i + j < length ? StringPrototypeCharCodeAt(text, i + j) : 0;
      if (code > 255) refuse("Invalid character");
      bits = bits << 8 | code;
    }
    for (let j = 3; j >= 0; j--) out[at++] = i + 3 - j > length ? EQUALS : letters[bits >> 6 * j & 63];
  }
  return host.decode("utf-8", out, false, true);
}

const functions = {
  atob(input) {
    base.needArguments(arguments.length, "input");
    return decode(`${input}`);
  },
  btoa(input) {
    base.needArguments(arguments.length, "input");
    return encode(`${input}`);
  },
};
base.expose("atob", functions.atob);
base.expose("btoa", functions.btoa);
