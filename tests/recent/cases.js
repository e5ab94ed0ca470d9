// The newest methods of the language. Prints the same bytes under Node 26, which has them built in, and in a stateful run of Heapstead.
const show = (value) => {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (Object.is(value, -0)) return "-0";
  if (ArrayBuffer.isView(value)) return `${Object.prototype.toString.call(value).slice(8, -1)}(${value.byteLength})[${value}]`;
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
};
const outcome = (act, tell) => {
  try {
    return show(act());
  } catch (error) {
    return tell(error);
  }
};
const print = (name, line) => console.log(`--- ${name}\n${line}`);
const full = (error) => (error instanceof Error ? `${error.name}: ${error.message}` : `thrown ${show(error)}`);
// The result or the error of each case; with `kinds`, only the name of an error, because messages differ between engines.
const run = (section, cases, tell = full) => cases.forEach((act) => print(`${section}: ${act.toString().slice(6)}`, outcome(act, tell)));
const kinds = (section, cases) => run(section, cases, (error) => error.name);
const throws = (value) => () => { throw value; };
const detached = () => {
  const bytes = new Uint8Array(4);
  bytes.buffer.transfer();
  return bytes;
};
const outOfBounds = () => {
  const buffer = new ArrayBuffer(8, { maxByteLength: 8 });
  const bytes = new Uint8Array(buffer, 4, 4);
  buffer.resize(4);
  return bytes;
};
// An object that logs what is read from it.
const logged = (log, values) => new Proxy(values, { get: (target, key) => (log.push(String(key)), target[key]) });
const everything = [undefined, null, true, 1, -0, "x", Symbol("s"), 10n, {}, [], () => 1, class A {}, /r/, new Map(), new Set(), new Date(0)];

const owners = {
  Promise: [Promise, "try"],
  RegExp: [RegExp, "escape"],
  Error: [Error, "isError"],
  "Map.prototype": [Map.prototype, "getOrInsert", "getOrInsertComputed"],
  "WeakMap.prototype": [WeakMap.prototype, "getOrInsert", "getOrInsertComputed"],
  Uint8Array: [Uint8Array, "fromBase64", "fromHex"],
  "Uint8Array.prototype": [Uint8Array.prototype, "toBase64", "setFromBase64", "toHex", "setFromHex"],
  Iterator: [Iterator, "concat"],
  Atomics: [Atomics, "pause"],
};
for (const [owner, [target, ...names]] of Object.entries(owners)) {
  for (const name of names) {
    const { value, writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(target, name);
    const own = Reflect.ownKeys(value).map((key) => {
      const descriptor = Object.getOwnPropertyDescriptor(value, key);
      return [key, descriptor.value, descriptor.writable, descriptor.enumerable, descriptor.configurable];
    });
    print(`shape of ${owner}.${name}`, show([writable, enumerable, configurable, own, Object.getPrototypeOf(value) === Function.prototype]));
    print(`new ${owner}.${name}`, outcome(() => new value(), (error) => error.name));
  }
  const listed = Reflect.ownKeys(target).filter((key) => names.includes(key));
  print(`order in ${owner}`, show(listed));
}
print("Intl.v8BreakIterator", "v8BreakIterator" in Intl);

run("escape", [
  () => RegExp.escape(""), () => RegExp.escape("foo"), () => RegExp.escape("1a"), () => RegExp.escape("Zed"), () => RegExp.escape("_x"),
  () => RegExp.escape("^$\\.*+?()[]{}|/"), () => RegExp.escape(",-=<>#&!%:;@~'`\""), () => RegExp.escape("\t\n\v\f\r"),
  () => RegExp.escape(" \xa0\u2028\u2029\ufeff\u3000"), () => RegExp.escape("\0\x07\x7f\x80\xff"), () => RegExp.escape("äöü漢字"),
  () => RegExp.escape("\u{1f600}a\u{10ffff}"), () => RegExp.escape("\ud83d"), () => RegExp.escape("a\ude00b\ud83d"),
  () => RegExp.escape("\ud83d\ud83d\ude00\ude00"), () => RegExp.escape.call(undefined, "a.b"), () => RegExp.escape(new String("a")),
  () => new RegExp(`^${RegExp.escape("[a-z]+ (1/2)\n")}$`, "v").test("[a-z]+ (1/2)\n"),
  () => new RegExp(`\\0${RegExp.escape("1")}`).test("\x001"),
  () => RegExp.escape(),
]);
for (const value of everything) {
  if (typeof value !== "string") print(`escape what is no string: ${typeof value}`, outcome(() => RegExp.escape(value), full));
}
let sum = 0;
for (let code = 0; code < 65536; code++) {
  for (const text of [String.fromCharCode(code), `_${String.fromCharCode(code)}`]) {
    const escaped = RegExp.escape(text);
    for (let i = 0; i < escaped.length; i++) sum = (sum * 31 + escaped.charCodeAt(i)) % 2147483647;
  }
}
print("escape: every code unit", sum);

run("isError", [
  () => Error.isError(new Error("x")), () => Error.isError(new RangeError("x")), () => Error.isError(new AggregateError([])),
  () => Error.isError(new (class extends TypeError {})()), () => Error.isError(Object.create(Error.prototype)), () => Error.isError(),
  () => Error.isError({ __proto__: Error.prototype, name: "Error", message: "m", stack: "s", [Symbol.toStringTag]: "Error" }),
  () => Error.isError(new Proxy(new Error("x"), {})), () => Error.isError(Object.setPrototypeOf(new Error("x"), null)),
  () => Error.isError(Object.freeze(new SyntaxError("x"))), () => Error.isError(new DOMException("x")),
  () => Error.isError.call(null, new Error("x")),
  () => Error.isError(Error), () => Error.isError(Error.prototype),
  () => Error.isError(new Proxy({}, { get: throws(1), getPrototypeOf: throws(2) })),
]);
print("isError of everything", show(everything.map((value) => Error.isError(value))));

run("Map", [
  () => new Map([["a", 1]]).getOrInsert("a", 2), () => new Map().getOrInsert("a", 2), () => new Map().getOrInsert("a"),
  () => { const m = new Map([["a", undefined]]); return [m.getOrInsert("a", 2), m.size]; },
  () => { const m = new Map(); m.getOrInsert("a", []).push(1); m.getOrInsert("a", []).push(2); return [...m]; },
  () => { const m = new Map(); m.getOrInsert(NaN, 1); return [m.getOrInsert(NaN, 2), m.size]; },
  () => { const m = new Map(); m.getOrInsert(-0, 1); return Object.is([...m.keys()][0], 0); },
  () => { const m = new Map(); let got; m.getOrInsertComputed(-0, (key) => { got = key; }); return Object.is(got, 0); },
  () => { const m = new Map([["b", 0]]); m.getOrInsert("a", 1); m.getOrInsert("b", 2); m.getOrInsertComputed("c", (k) => k + k); return [...m]; },
  () => new Map([[1, 2]]).getOrInsertComputed(1, throws("called")), () => new Map().getOrInsertComputed(1, throws("called")),
  () => { const m = new Map(); try { m.getOrInsertComputed(1, throws(0)); } catch { return m.size; } },
  () => { const m = new Map(); return [m.getOrInsertComputed("k", () => { m.set("k", 1); m.set("l", 2); return 3; }), ...m]; },
  () => { const m = new Map(); return [m.getOrInsertComputed("k", () => { m.set("k", 1); m.clear(); return 3; }), ...m]; },
  () => new Map().getOrInsertComputed(1, function () { "use strict"; return [this === undefined, ...arguments]; }),
  () => new Map().getOrInsertComputed(1, function () { return this === globalThis; }),
  () => new Map().getOrInsertComputed(1), () => new Map([[1, 2]]).getOrInsertComputed(1, {}), () => new Map().getOrInsertComputed(1, "f"),
  () => { class M extends Map { has() { return true; } get() { return "no"; } set() {} } return new M().getOrInsert("k", "yes"); },
  () => Map.prototype.getOrInsertComputed.call({}, 1, 2), () => Map.prototype.getOrInsert.call(new WeakMap(), {}, 1),
  () => Map.prototype.getOrInsert.call(new Proxy(new Map(), {}), 1, 1), () => Map.prototype.getOrInsert.call(Map.prototype, 1, 1),
]);
run("WeakMap", [
  () => { const k = {}; const m = new WeakMap([[k, 1]]); return [m.getOrInsert(k, 2), m.get(k)]; },
  () => { const k = {}; const m = new WeakMap(); return [m.getOrInsert(k, 2), m.get(k), m.getOrInsertComputed(k, throws(1))]; },
  () => { const k = Symbol("k"); const m = new WeakMap(); return [m.getOrInsertComputed(k, (key) => key === k), m.get(k)]; },
  () => { const k = {}; const m = new WeakMap(); return [m.getOrInsertComputed(k, () => { m.set(k, 1); return 2; }), m.get(k)]; },
  () => new WeakMap().getOrInsert(1, 2), () => new WeakMap().getOrInsert(), () => new WeakMap().getOrInsert(Symbol.for("s"), 2),
  () => new WeakMap().getOrInsertComputed(1, throws("called")), () => new WeakMap().getOrInsertComputed(Symbol.for("s"), throws("called")),
  () => new WeakMap().getOrInsertComputed(1, 2), () => new WeakMap().getOrInsertComputed({}, 2),
  () => new WeakMap().getOrInsertComputed({}),
  () => { const k = {}; return new WeakMap([[k, 1]]).getOrInsertComputed(k, 2); },
  () => WeakMap.prototype.getOrInsert.call(new Map(), {}, 1), () => WeakMap.prototype.getOrInsertComputed.call(undefined, {}, 1),
]);
everything.forEach((value, index) => {
  print(`receiver ${index}`, [
    () => Map.prototype.getOrInsert.call(value, 1, 2), () => WeakMap.prototype.getOrInsert.call(value, {}, 2),
    () => Uint8Array.prototype.toHex.call(value), () => Uint8Array.prototype.setFromHex.call(value, 1),
  ].map((act) => outcome(act, full)).join("\n"));
});

run("toHex", [
  () => new Uint8Array([0, 1, 15, 16, 127, 128, 255]).toHex(), () => new Uint8Array().toHex(),
  () => new Uint8Array(new Uint8Array([1, 2, 3, 4]).buffer, 1, 2).toHex(), () => new (class extends Uint8Array {})([1, 2]).toHex(),
  () => detached().toHex(), () => outOfBounds().toHex(), () => Uint8Array.prototype.toHex.call(new ArrayBuffer(2)),
  () => new Uint8Array(5000).fill(171).toHex() === "ab".repeat(5000),
]);
kinds("toHex", [
  () => Uint8Array.prototype.toHex.call(new Int8Array(2)), () => Uint8Array.prototype.toHex.call(new Uint8ClampedArray(2)),
  () => Uint8Array.prototype.toHex.call(new DataView(new ArrayBuffer(2))),
  () => Uint8Array.prototype.toHex.call(Object.create(Uint8Array.prototype)),
  () => Uint8Array.prototype.toHex.call(new Proxy(new Uint8Array(2), {})),
]);
run("fromHex", [
  () => Uint8Array.fromHex(""), () => Uint8Array.fromHex("00ff10"), () => Uint8Array.fromHex("AbCdEf"), () => Uint8Array.fromHex("0"),
  () => Uint8Array.fromHex("0g"), () => Uint8Array.fromHex("g0"), () => Uint8Array.fromHex(" 00"), () => Uint8Array.fromHex("00 0"),
  () => Uint8Array.fromHex("0x"), () => Uint8Array.fromHex("é0"), () => Uint8Array.fromHex("0\u0130"), () => Uint8Array.fromHex(12),
  () => Uint8Array.fromHex(), () => Uint8Array.fromHex({ toString: throws("called") }), () => Uint8Array.fromHex("aa").buffer.byteLength,
  () => Object.getPrototypeOf((class extends Uint8Array {}).fromHex("aa")) === Uint8Array.prototype,
  () => Uint8Array.fromHex.call(null, "aa"),
]);
const into = (length, fill) => {
  const bytes = new Uint8Array(length).fill(7);
  return [outcome(() => fill(bytes), full), ...bytes];
};
run("setFromHex", [
  () => into(3, (b) => b.setFromHex("0102")), () => into(2, (b) => b.setFromHex("010203")), () => into(0, (b) => b.setFromHex("01")),
  () => into(0, (b) => b.setFromHex("0")), () => into(3, (b) => b.setFromHex("01zz")), () => into(1, (b) => b.setFromHex("01zz")),
  () => into(3, (b) => b.setFromHex("010")), () => into(3, (b) => b.setFromHex(1)), () => into(3, (b) => b.subarray(1).setFromHex("aabb")),
  () => into(3, (b) => Object.keys(b.setFromHex("aa"))),
  () => into(3, (b) => Object.getPrototypeOf(b.setFromHex("aa")) === Object.prototype),
  () => detached().setFromHex("00"), () => outOfBounds().setFromHex("00"), () => detached().setFromHex(1),
  () => Uint8Array.prototype.setFromHex.call({}, 1),
]);

const some = new Uint8Array([255, 239, 190, 62]);
run("toBase64", [
  () => some.toBase64(), () => some.toBase64({}), () => some.toBase64({ alphabet: "base64" }),
  () => some.toBase64({ alphabet: "base64url" }),
  () => some.toBase64({ omitPadding: true }), () => some.toBase64({ omitPadding: "yes", alphabet: "base64url" }),
  () => some.toBase64({ omitPadding: 0 }), () => some.toBase64(undefined), () => some.toBase64(null), () => some.toBase64("base64url"),
  () => some.toBase64({ alphabet: "BASE64" }), () => some.toBase64({ alphabet: null }),
  () => some.toBase64({ alphabet: new String("base64") }),
  () => some.toBase64({ alphabet: Symbol("a") }), () => some.toBase64({ alphabet: new Map() }),
  () => some.toBase64({ alphabet: new Set() }),
  () => some.toBase64(Object.assign(() => {}, { alphabet: "base64url" })), () => new Uint8Array().toBase64(),
  () => [1, 2, 3, 4, 5].map((n) => new Uint8Array(n).fill(n).toBase64()),
  () => [1, 2, 3, 4, 5].map((n) => new Uint8Array(n).fill(n).toBase64({ omitPadding: true })),
  () => detached().toBase64(), () => outOfBounds().toBase64(), () => detached().toBase64({ alphabet: 1 }), () => detached().toBase64(1),
  () => { const log = []; some.toBase64(logged(log, {})); return log; },
  () => { const log = []; try { some.toBase64(logged(log, { alphabet: 1 })); } catch { return log; } },
  () => { const log = []; try { Uint8Array.prototype.toBase64.call([], logged(log, {})); } catch { return log; } },
  () => some.toBase64({ get alphabet() { throw "from the getter"; } }),
  () => { const b = new Uint8Array(3); return b.toBase64({ get omitPadding() { b.buffer.transfer(); return true; } }); },
  () => { const b = new Uint8Array(3); return b.toBase64({ get alphabet() { b[0] = 255; } }); },
]);

const texts = [
  "", " ", "A", "AA", "AAA", "AAAA", "AAAAA", "AA=", "AA==", "AA===", "AA= =", "AA = = ", "AAA=", "AAA==", "AB==", "AAB=", "//8=", "__8=", "-_-_",
  "+/+/", " A\tA\nA\fA\rA A==", "A\vAAA", "A\xa0AAA", "A===", "=", "====", "AAAA=", "AAAA====", "AA==AA==", "AA=A", "AAAA*", "AA*=", "é", "\u{1f600}",
  "AAAAA=", "AAAAAA=", "AAAAAA", "SGVsbG8gV29ybGQ=", "SGVsbG8gV29ybGQ", "SGVsbG8gV29ybG",
];
for (const alphabet of ["base64", "base64url"]) {
  for (const lastChunkHandling of ["loose", "strict", "stop-before-partial"]) {
    for (const text of texts) {
      print(`fromBase64 ${JSON.stringify(text)} ${alphabet} ${lastChunkHandling}`,
        outcome(() => Uint8Array.fromBase64(text, { alphabet, lastChunkHandling }), (error) => error.name));
      print(`setFromBase64 ${JSON.stringify(text)} ${alphabet} ${lastChunkHandling}`, show((() => {
        const bytes = new Uint8Array(16).fill(7);
        return [outcome(() => bytes.setFromBase64(text, { alphabet, lastChunkHandling }), (error) => error.name), ...bytes];
      })()));
    }
  }
}
run("fromBase64", [
  () => Uint8Array.fromBase64("AAA*"), () => Uint8Array.fromBase64("A"),
  () => Uint8Array.fromBase64("AB==", { lastChunkHandling: "strict" }),
  () => Uint8Array.fromBase64("AA", { lastChunkHandling: "strict" }), () => Uint8Array.fromBase64(), () => Uint8Array.fromBase64(null, 1),
  () => Uint8Array.fromBase64({ toString: throws("called") }), () => Uint8Array.fromBase64(new String("AAAA")),
  () => Uint8Array.fromBase64("", null),
  () => Uint8Array.fromBase64("", "strict"), () => Uint8Array.fromBase64("", { alphabet: "base32" }),
  () => Uint8Array.fromBase64("", { alphabet: 1 }),
  () => Uint8Array.fromBase64("", { lastChunkHandling: "Loose" }), () => Uint8Array.fromBase64("", { lastChunkHandling: null }),
  () => Uint8Array.fromBase64("", { lastChunkHandling: { toString: throws("called") } }), () => Uint8Array.fromBase64("AAAA", []),
  () => { const log = []; Uint8Array.fromBase64("", logged(log, {})); return log; },
  () => { const log = []; try { Uint8Array.fromBase64("", logged(log, { alphabet: "" })); } catch { return log; } },
  () => { const log = []; try { Uint8Array.fromBase64(1, logged(log, {})); } catch { return log; } },
  () => Uint8Array.fromBase64("AAA=").buffer.byteLength, () => Uint8Array.fromBase64("AA AA").buffer.resizable,
  () => Object.getPrototypeOf((class extends Uint8Array {}).fromBase64("AAAA")) === Uint8Array.prototype,
  () => Uint8Array.fromBase64.call(1, "AAAA"),
  () => { const all = Uint8Array.from({ length: 999 }, (_, i) => i * 7); return Uint8Array.fromBase64(all.toBase64()).toHex() === all.toHex(); },
  () => { const all = Uint8Array.from({ length: 998 }, (_, i) => i * 7); return Uint8Array.fromHex(all.toHex()).toBase64() === all.toBase64(); },
]);
run("setFromBase64", [
  () => into(4, (b) => b.setFromBase64("AQID")), () => into(3, (b) => b.setFromBase64("AQID")),
  () => into(4, (b) => b.setFromBase64("AQIDBAUG")),
  () => into(5, (b) => b.setFromBase64("AQIDBAUG")), () => into(2, (b) => b.setFromBase64("AQID")),
  () => into(1, (b) => b.setFromBase64("AQ==")),
  () => into(0, (b) => b.setFromBase64("")), () => into(5, (b) => b.setFromBase64("AQIDBA", { lastChunkHandling: "stop-before-partial" })),
  () => into(5, (b) => b.setFromBase64("AQIDBA==")), () => into(5, (b) => b.setFromBase64("AQID*AAA")),
  () => into(5, (b) => b.setFromBase64("AQIDB*AA")),
  () => into(5, (b) => b.setFromBase64("AQIDBA=*")), () => into(5, (b) => b.subarray(1).setFromBase64("__8", { alphabet: "base64url" })),
  () => into(5, (b) => b.setFromBase64(1)), () => into(5, (b) => b.setFromBase64("", 1)),
  () => into(5, (b) => Object.keys(b.setFromBase64("AQID"))),
  () => detached().setFromBase64("AAAA"), () => outOfBounds().setFromBase64("AAAA"), () => detached().setFromBase64(1),
  () => detached().setFromBase64("", { alphabet: 1 }), () => Uint8Array.prototype.setFromBase64.call({}, 1, 2),
  () => { const b = new Uint8Array(3); return b.setFromBase64("AAAA", { get alphabet() { b.buffer.transfer(); } }); },
  () => { const log = []; new Uint8Array(3).setFromBase64("AAAA", logged(log, {})); return log; },
]);

const source = (log, name, values, more = {}) => ({
  get [Symbol.iterator]() {
    log.push(`${name}: method`);
    return function () {
      log.push(`${name}: open ${this.isIterable ?? "?"}`);
      let at = 0;
      return {
        get next() {
          log.push(`${name}: next`);
          return () => (log.push(`${name}: step`), at < values.length ? { done: false, value: values[at++] } : { done: true, value: "end" });
        },
        return() {
          log.push(`${name}: return`);
          return {};
        },
        ...more,
      };
    };
  },
  isIterable: name,
});
const traced = (act) => {
  const log = [];
  log.push(outcome(() => act(log), full));
  return log.join(" | ");
};
run("concat", [
  () => [...Iterator.concat()], () => Iterator.concat().next(), () => [...Iterator.concat([1, 2], new Set([3]), new Map([[4, 5]]))],
  () => [...Iterator.concat([], [], [1], [])], () => Iterator.concat([1], [2]).map((x) => x * 2).toArray(),
  () => [...Iterator.concat([1], Iterator.from([2]))],
  () => Object.prototype.toString.call(Iterator.concat()), () => Iterator.concat() instanceof Iterator,
  () => Object.getPrototypeOf(Iterator.concat()) === Object.getPrototypeOf([].values().map((x) => x)),
  () => Reflect.ownKeys(Iterator.concat([1])),
  () => { const i = Iterator.concat([1]); return i[Symbol.iterator]() === i; }, () => Iterator.concat([undefined]).next().done,
  () => { const i = Iterator.concat([1]); return [i.next(), i.next(), i.next(), Object.keys(i.next())]; },
  () => [...Iterator.concat.call(null, [1])], () => [...Iterator.concat(new String("ab"))], () => Iterator.concat("ab"),
  () => Iterator.concat(1),
  () => Iterator.concat([1], null), () => Iterator.concat(undefined), () => Iterator.concat({}),
  () => Iterator.concat({ [Symbol.iterator]: null }),
  () => Iterator.concat({ [Symbol.iterator]: 1 }), () => Iterator.concat({ [Symbol.iterator]: {} }), () => Iterator.concat(() => 1),
  () => Iterator.concat({ get [Symbol.iterator]() { throw "from the getter"; } }),
  () => Iterator.concat({ [Symbol.iterator]: () => 1 }).next(),
  () => Iterator.concat({ [Symbol.iterator]: () => undefined }).next(),
  () => Iterator.concat({ [Symbol.iterator]: throws("from the method") }).next(),
  () => Iterator.concat({ [Symbol.iterator]: () => ({}) }).next(),
  () => Iterator.concat({ [Symbol.iterator]: () => ({ next: () => 1 }) }).next(),
  () => traced((log) => [...Iterator.concat(source(log, "a", [1, 2]), source(log, "b", [3]))]),
  () => traced((log) => Iterator.concat(source(log, "a", [1]), 1)), () => traced((log) => Iterator.concat(source(log, "a", [1])).return()),
  () => traced((log) => { const i = Iterator.concat(source(log, "a", [1, 2]), source(log, "b", [3])); return [i.next(), i.return(), i.next(), i.return()]; }),
  () => traced((log) => { const i = Iterator.concat(source(log, "a", [1])); return [i.next(), i.next(), i.return()]; }),
  () => traced((log) => { for (const x of Iterator.concat(source(log, "a", [1, 2]))) { log.push(x); break; } }),
  () => traced((log) => { const [x] = Iterator.concat(source(log, "a", [1, 2]), source(log, "b", [3])); return x; }),
  () => traced((log) => Iterator.concat(source(log, "a", [1], { return: throws("from return") })).take(1).toArray()),
  () => traced((log) => { const i = Iterator.concat(source(log, "a", [1], { return: () => 1 })); i.next(); return i.return(); }),
  () => traced((log) => { const i = Iterator.concat(source(log, "a", [1], { return: undefined })); i.next(); return i.return(); }),
  () => traced((log) => { const i = Iterator.concat(source(log, "a", [1], { next: throws("from next"), return: undefined }), [2]); try { i.next(); } catch (e) { log.push(e); } return i.next(); }),
  () => traced((log) => { const i = Iterator.concat({ [Symbol.iterator]: throws("open") }, source(log, "b", [1])); try { i.next(); } catch (e) { log.push(e); } return i.next(); }),
  () => { const a = [1]; const i = Iterator.concat(a); a.push(2); return [...i]; },
  () => { const a = { *[Symbol.iterator]() { yield 1; } }; const i = Iterator.concat(a, a); a[Symbol.iterator] = undefined; return [...i]; },
  () => { let i; i = Iterator.concat({ *[Symbol.iterator]() { yield outcome(() => i.next(), (e) => e.name); } }); return [...i]; },
  () => Iterator.concat([1]).next.call({}), () => [...Iterator.concat(Iterator.concat([1], [2]), Iterator.concat([3]))],
]);

run("pause", [
  () => Atomics.pause(), () => Atomics.pause(undefined), () => Atomics.pause(0), () => Atomics.pause(-0), () => Atomics.pause(-5), () => Atomics.pause(2 ** 53), () => Atomics.pause(1.5),
  () => Atomics.pause(NaN), () => Atomics.pause(Infinity), () => Atomics.pause("1"), () => Atomics.pause(null), () => Atomics.pause(1n), () => Atomics.pause({ valueOf: () => 1 }),
  () => Atomics.pause(Object(1)), () => Atomics.pause(true), () => Atomics.pause.call(undefined, 1),
]);

// Promises settle later, one after another.
const settled = [
  () => Promise.try(() => 1), () => Promise.try(() => Promise.resolve(2)), () => Promise.try(async () => 3),
  () => Promise.try(throws("thrown")),
  () => Promise.try(() => Promise.reject("rejected")), () => Promise.try((...args) => args, 1, "2", null),
  () => Promise.try((...args) => args.length),
  () => Promise.try(function () { "use strict"; return this === undefined; }), () => Promise.try(), () => Promise.try({}),
  () => Promise.try(Symbol("s")),
  () => Promise.try(() => ({ then(resolve) { resolve("from then"); } })),
  () => Promise.try(() => ({ get then() { throw "from the getter"; } })),
  () => Promise.try.call(1, () => 1), () => Promise.try.call(undefined, () => 1), () => Promise.try.call({}, () => 1),
  () => Promise.try.call(() => 1, () => 1), () => { const { try: attempt } = Promise; return attempt(() => 1); },
  () => Promise.try(() => 1) instanceof Promise, () => { class P extends Promise {} return P.try(() => 1).constructor === P; },
  () => { const p = Promise.resolve(1); return Promise.try(() => p) === p; },
  () => { let called = false; Promise.try(() => { called = true; }); return called; },
  () => Promise.try.call(function (executor) { const log = this.log = []; executor((v) => log.push("resolve", v), (v) => log.push("reject", v)); }, () => 1),
  () => Promise.try.call(function (executor) { const log = this.log = []; executor((v) => log.push("resolve", v), (v) => log.push("reject", v)); }, throws(2)),
  () => Promise.try.call(function (executor) { executor(throws("from resolve"), () => {}); }, () => 1),
  () => Promise.try.call(function (executor) { executor(() => {}, throws("from reject")); }, throws(1)),
  () => Promise.try.call(function (executor) { executor(1, 2); }, () => 1), () => Promise.try.call(function () {}, () => 1),
  () => Promise.try.call(function () { throw "from the constructor"; }, () => 1),
];
const kindsOnly = [() => Promise.try(1), () => Promise.try(null), () => Promise.try("f"), () => Promise.try(true)];
(async () => {
  for (const [acts, tell] of [[settled, full], [kindsOnly, (error) => error.name]]) {
    for (const act of acts) {
      let line;
      try {
        line = `gives ${show(await act())}`;
      } catch (error) {
        line = tell(error);
      }
      print(`try: ${act.toString().slice(6)}`, line);
    }
  }
  const order = [];
  Promise.try(() => order.push("called")).then(() => order.push("then 1"));
  Promise.resolve().then(() => order.push("then 2"));
  order.push("after");
  await new Promise((resolve) => { setTimeout(resolve, 1); });
  print("try: order", order.join());
})();
