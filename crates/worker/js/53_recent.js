// The newest methods of the language, which V8 leaves out of contexts that are to be saved; messages are as V8 words them.
const { uncurryThis, isObject, list } = base;
const { Promise } = globalThis;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);

// Non-standard, and holds what can't be saved.
delete Intl.v8BreakIterator;

// Runs once in the life of a heap, before any user code, so that the base heap holds no more of this than the source.
let make = () => {
  const { RangeError, SyntaxError, TypeError, Uint8Array, WeakMap } = globalThis;
  const { iterator: SymbolIterator } = Symbol;
  const { apply } = Reflect;
  const withResolvers = uncurryThis(Promise.withResolvers);
  const flatMap = uncurryThis(Iterator.prototype.flatMap);
  const mapHas = uncurryThis(Map.prototype.has);
  const setHas = uncurryThis(Set.prototype.has);
  const toText = uncurryThis(Number.prototype.toString);
  const charCodeAt = uncurryThis(String.prototype.charCodeAt);
  const codePointAt = uncurryThis(String.prototype.codePointAt);
  const find = uncurryThis(String.prototype.indexOf);
  const padStart = uncurryThis(String.prototype.padStart);
  const slice = uncurryThis(String.prototype.slice);
  const trim = uncurryThis(String.prototype.trim);
  const byteAt = uncurryThis(Uint8Array.prototype.at);
  const ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

  const refuse = (message, Kind = TypeError) => { throw new Kind(message); };
  // How V8 shows a value in a message, running no code of it. (Nothing is both a Map and a Set.)
  const shown = (value) => {
    try {
      mapHas(value);
      setHas(value);
    } catch ({ message }) {
      return slice(message, 57);
    }
  };
  const incompatible = (name, value) => refuse(`Method ${name} called on incompatible receiver ${shown(value)}`);
  const needString = (value) => typeof value === "string" || refuse("input argument must be a string");

  const upserts = (kind, { prototype }) => {
    const has = uncurryThis(prototype.has);
    const get = uncurryThis(prototype.get);
    const set = uncurryThis(prototype.set);
    const find = (map, key, name) => {
      try {
        return has(map, key);
      } catch {
        incompatible(`${kind}.prototype.${name}`, map);
      }
    };
    return {
      getOrInsert(key, value) {
        if (find(this, key, "getOrInsert")) return get(this, key);
        set(this, key, value);
        return value;
      },
      getOrInsertComputed(key, callback) {
        const name = "getOrInsertComputed";
        const found = find(this, key, name);
        // Throws for what can't be a weak key, before the callback could run.
        if (!found && kind === "WeakMap") set(new WeakMap(), key);
        if (typeof callback !== "function") refuse(`${kind}.prototype.${name} is not a function`);
        if (found) return get(this, key);
        const value = callback(key === 0 ? 0 : key);
        set(this, key, value);
        return value;
      },
    };
  };

  const makeCodec = () => {
    const HEX = "0123456789abcdef0123456789ABCDEF";
    const sizeOf = (bytes, name) => {
      try {
        byteAt(bytes, 0);
      } catch {
        refuse(`Cannot perform Uint8Array.prototype.${name} on a detached or out-of-bounds ArrayBuffer`);
      }
      return base.byteLength(bytes);
    };
    const roomFor = (length) => (length > 0x1fffffe8 ? refuse("Invalid string length", RangeError) : new Uint8Array(length));
    const textOf = (ascii) => host.decode("utf-8", ascii, false, true);
    const optionsOf = (options) => {
      if (options === undefined) return { __proto__: null };
      return isObject(options) ? options : refuse("invalid_argument");
    };
    const choice = (value, usual, second, third) => {
      if (value === undefined) return usual;
      return value === usual || value === second || value === third ? value : refuse(`invalid option ${shown(value)}`);
    };
    const lettersOf = ({ alphabet }) => ALPHANUMERIC + (choice(alphabet, "base64", "base64url") === "base64" ? "+/" : "-_");
    return {
      // Decodes into `target`, or else into new bytes. What was decoded before an error stays there.
      fromBase64(text, given, target) {
        needString(text);
        const options = optionsOf(given);
        const letters = lettersOf(options);
        const last = choice(options.lastChunkHandling, "loose", "strict", "stop-before-partial");
        const { length } = text;
        const limit = target ? sizeOf(target, "setFromBase64") : Infinity;
        const into = target ?? new Uint8Array(length * 3 >> 2);
        // `read` counts whole chunks only, until the text is used up.
        let at = 0, read = 0, written = 0, count = 0, bits = 0;
        const badCharacter = () => refuse("Found a character that cannot be part of a valid base64 string.", SyntaxError);
        const badEnd = (how) => refuse(`The base64 input terminates with ${how}.`, SyntaxError);
        const peek = () => {
          while (at < length && find(" \t\n\f\r", text[at]) >= 0) at++;
          return at < length ? text[at] : "";
        };
        const flush = () => {
          bits <<= 24 - 6 * count;
          for (let i = 1; i < count; i++) into[written++] = bits >> 24 - 8 * i;
          read = count < 4 ? length : at;
          bits = count = 0;
        };
        const finish = () => {
          if (count === 0) read = length;
          else if (last === "strict" || (last === "loose" && count === 1)) badEnd("a single character, excluding padding (=)");
          else if (last === "loose") flush();
        };
        const finishPadded = () => {
          if (count < 2) badCharacter();
          at++;
          if (count === 2) {
            const next = peek();
            if (next === "" && last === "stop-before-partial") return;
            if (next !== "=") badCharacter();
            at++;
          }
          if (peek() !== "") badCharacter();
          if (last === "strict" && bits & (count === 2 ? 15 : 3)) badEnd("non-zero padding bits");
          flush();
        };
        while (written < limit) {
          const char = peek();
          if (char === "" || char === "=") {
            char === "" ? finish() : finishPadded();
            break;
          }
          const digit = find(letters, char);
          if (digit < 0) badCharacter();
          // The chunk would not fit.
          if (count > 1 && limit - written === count - 1) break;
          at++;
          bits = bits << 6 | digit;
          if (++count === 4) flush();
        }
        return target ? { read, written } : new Uint8Array(base.slice(into, 0, written));
      },
      fromHex(text, target) {
        needString(text);
        const { length } = text;
        const limit = target ? sizeOf(target, "setFromHex") : length;
        const into = target ?? new Uint8Array(length >> 1);
        const bad = () => refuse("Input string must contain hex characters in even length", SyntaxError);
        if (length % 2) bad();
        let read = 0, written = 0;
        while (read < length && written < limit) {
          const high = find(HEX, text[read]);
          const low = find(HEX, text[read + 1]);
          if ((high | low) < 0) bad();
          into[written++] = high << 4 | low & 15;
          read += 2;
        }
        return target ? { read, written } : into;
      },
      toBase64(bytes, given) {
        const options = optionsOf(given);
        const letters = lettersOf(options);
        const { omitPadding } = options;
        const size = sizeOf(bytes, "toBase64");
        const padding = (3 - size % 3) % 3;
        const out = roomFor((size + padding) / 3 * 4);
        let end = 0;
        for (let i = 0; i < size; i += 3) {
          const bits = bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2];
          for (let shift = 18; shift >= 0; shift -= 6) out[end++] = charCodeAt(letters, bits >> shift & 63);
        }
        if (omitPadding) return textOf(base.slice(out, 0, end - padding));
        for (let i = 1; i <= padding; i++) out[end - i] = 61;
        return textOf(out);
      },
      toHex(bytes) {
        const size = sizeOf(bytes, "toHex");
        const out = roomFor(2 * size);
        for (let i = 0; i < size; i++) {
          out[2 * i] = charCodeAt(HEX, bytes[i] >> 4);
          out[2 * i + 1] = charCodeAt(HEX, bytes[i] & 15);
        }
        return textOf(out);
      },
    };
  };
  let made;
  const codec = () => made ??= makeCodec();
  const codecFor = (bytes, name) =>
    (base.kindOfView(bytes) === "Uint8Array" ? codec() : incompatible(`Uint8Array.prototype.${name}`, bytes));

  return [
    Promise, {
      try(callback, ...values) {
        if (!isObject(this)) refuse("Promise.try called on non-object");
        const { promise, resolve, reject } = withResolvers(this);
        let settle = resolve, value;
        try {
          value = typeof callback === "function" ? apply(callback, undefined, values) : refuse(`${typeof callback} is not a function`);
        } catch (error) {
          settle = reject;
          value = error;
        }
        settle(value);
        return promise;
      },
    },
    RegExp, {
      escape(text) {
        needString(text);
        const hex = (code) => (code < 256 ? "\\x" : "\\u") + padStart(toText(code, 16), code < 256 ? 2 : 4, "0");
        const escaped = (char, code) => {
          if (find("^$\\.*+?()[]{}|/", char) >= 0) return `\\${char}`;
          const control = find("\t\n\v\f\r", char);
          if (control >= 0) return `\\${"tnvfr"[control]}`;
          const isSurrogate = code > 0xd7ff && code < 0xe000;
          return isSurrogate || find(",-=<>#&!%:;@~'`\"", char) >= 0 || trim(char) === "" ? hex(code) : char;
        };
        let out = "";
        for (let i = 0; i < text.length; i++) {
          const code = codePointAt(text, i);
          if (i === 0 && find(ALPHANUMERIC, text[0]) >= 0) out = hex(code);
          else out += code > 0xffff ? text[i] + text[++i] : escaped(text[i], code);
        }
        return out;
      },
    },
    Error, { isError(value) { return isObject(value) && host.classOf(value) === "Error"; } },
    Map.prototype, upserts("Map", Map),
    WeakMap.prototype, upserts("WeakMap", WeakMap),
    Uint8Array, {
      fromBase64(text, options = undefined) { return codec().fromBase64(text, options); },
      fromHex(text) { return codec().fromHex(text); },
    },
    Uint8Array.prototype, {
      toBase64(options = undefined) { return codecFor(this, "toBase64").toBase64(this, options); },
      setFromBase64(text, options = undefined) { return codecFor(this, "setFromBase64").fromBase64(text, options, this); },
      toHex() { return codecFor(this, "toHex").toHex(this); },
      setFromHex(text) { return codecFor(this, "setFromHex").fromHex(text, this); },
    },
    Iterator, {
      // One of V8's own iterator helpers, over the iterables still to be opened.
      concat(...items) {
        const openerOf = (item) => {
          if (!isObject(item)) refuse("Iterator.concat called on non-object");
          const method = item[SymbolIterator];
          if (method === undefined || method === null) refuse(`${shown(item)} is not iterable`);
          if (typeof method !== "function") {
            refuse(`'${shown(method)}' returned for property 'Symbol(Symbol.iterator)' of object '${shown(item)}' is not a function`);
          }
          return () => {
            const iterator = apply(method, item, list());
            if (!isObject(iterator)) refuse(`${shown(iterator)} is not iterable`);
            return { __proto__: null, [SymbolIterator]: () => iterator };
          };
        };
        const openers = list();
        for (let i = 0; i < items.length; i++) openers[i] = openerOf(items[i]);
        let at = 0;
        const next = () => ({ __proto__: null, done: at === openers.length, value: openers[at++] });
        return flatMap({ __proto__: null, next }, (open) => open());
      },
    },
  ];
};

// Where they are V8's own, all are there.
base.onInstall(() => {
  if (make === undefined || hasOwn(Promise, "try")) return;
  const made = make();
  make = undefined;
  for (let i = 0; i < made.length; i += 2) {
    for (const name in made[i + 1]) {
      if (!hasOwn(made[i], name)) base.define(made[i], name, made[i + 1][name]);
    }
  }
});
