// The newest methods of the language, which V8 leaves out of contexts for snapshots. Messages are worded as V8's.
const { uncurryThis, isObject, list } = base;
const { Promise } = globalThis;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);

// Non-standard, and its objects can't be saved.
delete Intl.v8BreakIterator;
// No other thread could end such a wait.
delete Atomics.waitAsync;

// Pairs of an object and its missing methods.
let made = (() => {
  const { RangeError, SyntaxError, TypeError, Uint8Array, WeakMap } = globalThis;
  const { iterator: SymbolIterator } = Symbol;
  const { apply } = Reflect;
  const { isInteger } = Number;
  const withResolvers = uncurryThis(Promise.withResolvers);
  const flatMap = uncurryThis(Iterator.prototype.flatMap);
  const mapHas = uncurryThis(Map.prototype.has);
  const setHas = uncurryThis(Set.prototype.has);
  const toText = uncurryThis(Number.prototype.toString);
  const codePointAt = uncurryThis(String.prototype.codePointAt);
  const find = uncurryThis(String.prototype.indexOf);
  const padStart = uncurryThis(String.prototype.padStart);
  const slice = uncurryThis(String.prototype.slice);
  const trim = uncurryThis(String.prototype.trim);
  const byteAt = uncurryThis(Uint8Array.prototype.at);

  const refuse = (message, Kind = TypeError) => { throw new Kind(message); };
  // A value as V8 shows it in messages, without calling user code. (No value is both a Map and a Set.)
  const shown = (value) => {
    try {
      mapHas(value);
      setHas(value);
    } catch ({ message }) {
      return slice(message, 57);
    }
  };
  const needString = (value) => typeof value === "string" || refuse("input argument must be a string");

  const upserts = (kind, { prototype }) => {
    const has = uncurryThis(prototype.has);
    const get = uncurryThis(prototype.get);
    const set = uncurryThis(prototype.set);
    const holds = (map, key, name) => {
      try {
        return has(map, key);
      } catch {
        refuse(`Method ${kind}.prototype.${name} called on incompatible receiver ${shown(map)}`);
      }
    };
    return {
      getOrInsert(key, value) {
        if (holds(this, key, "getOrInsert")) return get(this, key);
        set(this, key, value);
        return value;
      },
      getOrInsertComputed(key, callback) {
        const name = "getOrInsertComputed";
        const isHeld = holds(this, key, name);
        if (typeof callback !== "function") refuse(`${kind}.prototype.${name} is not a function`);
        if (isHeld) return get(this, key);
        // Throws for a value that can't be a weak key, before the callback is called.
        if (kind === "WeakMap") set(new WeakMap(), key);
        const value = callback(key === 0 ? 0 : key);
        set(this, key, value);
        return value;
      },
    };
  };

  // Created on first use by a method of Uint8Array or of an instance.
  let codec;
  const codecFor = (bytes, name) => {
    if (name && base.kindOfView(bytes) !== "Uint8Array") {
      refuse(`Method Uint8Array.prototype.${name} called on incompatible receiver ${shown(bytes)}`);
    }
    return codec ??= makeCodec();
  };
  const makeCodec = () => {
    const SPACE = 65, PADDING = 66, END = 67;
    const { utf8Encode } = host;
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
    const lettersOf = ({ alphabet }) => {
      const last = choice(alphabet, "base64", "base64url") === "base64" ? "+/" : "-_";
      return utf8Encode(`ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${last}`);
    };
    // For each byte the value of the digit, plus one.
    const kindsOf = (letters, count) => {
      const kinds = new Uint8Array(256);
      for (let i = 0; i < count; i++) kinds[letters[i]] = i + 1;
      return kinds;
    };
    return {
      // Decodes into `target`, or into a new array. Bytes decoded before an error remain.
      fromBase64(text, given, target) {
        needString(text);
        const options = optionsOf(given);
        const letters = lettersOf(options);
        const last = choice(options.lastChunkHandling, "loose", "strict", "stop-before-partial");
        const limit = target ? sizeOf(target, "setFromBase64") : Infinity;
        const { length } = text;
        // Up to the first invalid character, each character is one byte.
        const bytes = utf8Encode(text);
        const into = target ?? new Uint8Array(length * 3 >> 2);
        const kinds = kindsOf(letters, 64);
        kinds[9] = kinds[10] = kinds[12] = kinds[13] = kinds[32] = SPACE;
        kinds[61] = PADDING;
        // `read` counts whole chunks only, until the end of the text.
        let at = 0, read = 0, written = 0, count = 0, bits = 0;
        const badCharacter = () => refuse("Found a character that cannot be part of a valid base64 string.", SyntaxError);
        const badEnd = (how) => refuse(`The base64 input terminates with ${how}.`, SyntaxError);
        const peek = () => {
          while (at < length) {
            const kind = kinds[bytes[at]];
            if (kind !== SPACE) return kind;
            at++;
          }
          return END;
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
            if (next === END && last === "stop-before-partial") return;
            if (next !== PADDING) badCharacter();
            at++;
          }
          if (peek() !== END) badCharacter();
          if (last === "strict" && bits & (count === 2 ? 15 : 3)) badEnd("non-zero padding bits");
          flush();
        };
        while (written < limit) {
          const kind = peek();
          if (kind > 64) {
            kind === END ? finish() : finishPadded();
            break;
          }
          if (kind === 0) badCharacter();
          // The chunk would not fit into `target`.
          if (count > 1 && limit - written === count - 1) break;
          at++;
          bits = bits << 6 | kind - 1;
          if (++count === 4) flush();
        }
        return target ? { read, written } : new Uint8Array(base.slice(into, 0, written));
      },
      fromHex(text, target) {
        needString(text);
        const limit = target ? sizeOf(target, "setFromHex") : Infinity;
        const { length } = text;
        const bytes = utf8Encode(text);
        const into = target ?? new Uint8Array(length >> 1);
        const kinds = kindsOf(utf8Encode("0123456789abcdef"), 16);
        for (let code = 65; code < 71; code++) kinds[code] = code - 54;
        const bad = () => refuse("Input string must contain hex characters in even length", SyntaxError);
        if (length % 2) bad();
        let read = 0, written = 0;
        while (read < length && written < limit) {
          const byte = kinds[bytes[read]] - 1 << 4 | kinds[bytes[read + 1]] - 1;
          if (byte < 0) bad();
          into[written++] = byte;
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
          for (let shift = 18; shift >= 0; shift -= 6) out[end++] = letters[bits >> shift & 63];
        }
        if (omitPadding) return textOf(base.slice(out, 0, end - padding));
        for (let i = 1; i <= padding; i++) out[end - i] = 61;
        return textOf(out);
      },
      toHex(bytes) {
        const size = sizeOf(bytes, "toHex");
        const out = roomFor(2 * size);
        const letters = utf8Encode("0123456789abcdef");
        for (let i = 0; i < size; i++) {
          out[2 * i] = letters[bytes[i] >> 4];
          out[2 * i + 1] = letters[bytes[i] & 15];
        }
        return textOf(out);
      },
    };
  };

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
        // First characters escaped with a backslash, then control characters with a letter, then characters escaped by their code.
        const special = "^$\\.*+?()[]{}|/\t\n\v\f\r ,-=<>#&!%:;@~'`\"";
        const escaped = (char, code) => {
          if (code > 127) return (code > 0xd7ff && code < 0xe000) || trim(char) === "" ? hex(code) : char;
          const at = find(special, char);
          return at < 0 ? char : at < 15 ? `\\${char}` : at < 20 ? `\\${"tnvfr"[at - 15]}` : hex(code);
        };
        let out = "", from = 0;
        for (let i = 0; i < text.length; i++) {
          const code = codePointAt(text, i);
          const lower = code | 32;
          const isAlphanumeric = (lower > 96 && lower < 123) || (code > 47 && code < 58);
          if (code > 0xffff) i++;
          else if (i === 0 || !isAlphanumeric) {
            out += slice(text, from, i) + (isAlphanumeric ? hex(code) : escaped(text[i], code));
            from = i + 1;
          }
        }
        return out + slice(text, from);
      },
    },
    Error, { isError(value) { return isObject(value) && host.classOf(value) === "Error"; } },
    Map.prototype, upserts("Map", Map),
    WeakMap.prototype, upserts("WeakMap", WeakMap),
    Uint8Array, {
      fromBase64(text, options = undefined) { return codecFor().fromBase64(text, options); },
      fromHex(text) { return codecFor().fromHex(text); },
    },
    Uint8Array.prototype, {
      toBase64(options = undefined) { return codecFor(this, "toBase64").toBase64(this, options); },
      setFromBase64(text, options = undefined) { return codecFor(this, "setFromBase64").fromBase64(text, options, this); },
      toHex() { return codecFor(this, "toHex").toHex(this); },
      setFromHex(text) { return codecFor(this, "setFromHex").fromHex(text, this); },
    },
    Atomics, {
      // With a single thread there is nothing to pause for.
      pause(iterations = undefined) {
        if (iterations !== undefined && !isInteger(iterations)) refuse("Atomics.pause argument must be undefined or an integer");
      },
    },
    Iterator, {
      // One of V8's own iterator helpers, over the iterables that are not opened yet.
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
})();

// Once per heap. If the methods are V8's own, all of them exist.
base.onInstall(() => {
  if (made === undefined || hasOwn(Promise, "try")) return;
  for (let i = 0; i < made.length; i += 2) {
    for (const name in made[i + 1]) {
      if (!hasOwn(made[i], name)) base.define(made[i], name, made[i + 1][name]);
    }
  }
  made = undefined;
});
