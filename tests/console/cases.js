// Every way a value is shown: run by Node and by Heapstead, the output must be the same to the byte.
// A case is a function; its source is its label. No API beyond ECMAScript and console, no stacks (their paths differ).

function show(section, cases) {
  for (const make of cases) {
    console.log(`--- ${section}: ${make.toString().slice(6)}`);
    console.log(make());
  }
}
function run(section, cases) {
  for (const act of cases) {
    console.log(`--- ${section}: ${act.toString().slice(6)}`);
    act();
  }
}
const custom = Symbol.for("nodejs.util.inspect.custom");
const numbers = (length, f = (i) => i) => Array.from({ length }, (_, i) => f(i));
const withStack = (error, stack) => { error.stack = stack; return error; };
const frames = (count) => numbers(count, (i) => `\n    at f${i} (x.js:${i}:1)`).join("");
class Foo { constructor(fields) { Object.assign(this, fields); } }

show("primitives", [
  () => undefined, () => null, () => true, () => 0, () => -0, () => 1.5, () => 1e21, () => 5e-324, () => NaN, () => -Infinity,
  () => 123456789.123, () => 10n, () => -10n, () => "plain", () => "", () => Symbol("a b"), () => Symbol(), () => Symbol.iterator,
  () => Symbol("line\nbreak"), () => [undefined, null, true, -0, NaN, 10n, "s", Symbol("s")],
]);

show("strings", [
  () => ["it's"], () => ['say "hi"'], () => [`it's "q"`], () => [`it's "q" \``], () => ["'`"], () => ["'\"${x}"], () => ["\\"],
  () => [""], () => ["\x00\x01\x1f\x7f\x80\x9f\xa0"], () => ["\b\t\n\v\f\r"], () => ["\x1b[31mred\x1b[0m"],
  () => ["\u2028\u2029\ufeff\u200b"], () => ["\ud83d"], () => ["\ude00\ud83d"], () => ["a\ud83d\ude00b"], () => ["\ud800 \udc00"],
  () => ["a\nb"], () => ["x".repeat(16) + "\n" + "y".repeat(16)], () => ["a\n" + "b".repeat(80)],
  () => ({ a: "long line of text\n".repeat(6) }), () => ({ k: { a: "x".repeat(70) + "\n" + "y".repeat(5) } }),
  () => ({ k: { a: ["x".repeat(70) + "\n" + "y".repeat(5)] } }), () => ["x".repeat(100) + " " + "y".repeat(100)],
  () => ["x".repeat(10001)], () => ["x".repeat(10005) + "\n"], () => new Map([["x".repeat(70) + "\ny", "x".repeat(70) + "\ny"]]),
  () => ({ a: "it's", b: 'say "hi"', c: "both ' and \"" }),
]);

show("keys", [
  () => ({ a1: 1, _b: 2, $c: 3, "1d": 4, "e-f": 5, "": 6, "it's": 7, é: 8, 日本: 9, undefined: 10 }), () => ({ 2: "b", 1: "a", x: 0 }),
  () => ({ "a\nb": 1, "\x1b": 2, "a'b": 3 }), () => ({ [Symbol("x")]: 1, [Symbol()]: 2, [Symbol.iterator]: 3 }),
  () => ({ [Symbol("it's \\ \x1b é \ud800")]: 1 }), () => ({ ["__proto__"]: 1 }), () => JSON.parse('{"__proto__":{"a":1}}'),
  () => Object.defineProperty({}, "hidden", { value: 1 }),
  () => ({ get a() { return 1; }, set b(v) {}, get c() { return 1; }, set c(v) {} }), () => ({ get a() { throw 1; } }),
  () => ({ toString() {}, valueOf: 1, constructor: "x" }), () => ({ "a-b": () => {}, "x y"() {}, [Symbol("s")]: () => {} }),
]);

show("nesting", [
  () => ({}), () => [], () => ({ a: {} }), () => [[]], () => ({ a: { b: { c: {} } } }), () => ({ a: { b: { c: { d: 1 } } } }),
  () => [[[[]]]], () => [[[[1]]]], () => ({ a: [{ b: [{ c: 1 }] }] }), () => ({ a: { b: { c: 1 } }, x: { y: { z: 1 } } }),
  () => ({ a: { b: { c: 1 } }, x: { y: { z: { a: 1 } } } }), () => ({ a: 1, b: "x", c: [1, 2, { d: 1 }] }),
  () => ({ a: { b: { c: new Foo({ x: 1 }), d: () => {}, e: new Date(0), f: /x/, g: new Number(1), h: new Set([1]) } } }),
  () => ({ a: { b: { c: Object.create(null), d: Object.assign(Object.create(null), { x: 1 }), e: new Uint8Array(1) } } }),
  () => ({ a: { b: { c: Object.assign(() => {}, { x: 1 }), d: Object.assign(/x/, { x: 1 }), e: Object.assign(new Date(0), { x: 1 }) } } }),
  () => ({ a: { b: { c: Promise.resolve(1), d: new ArrayBuffer(1), e: new WeakMap(), f: new Map().values() } } }),
  () => ({ a: { b: { c: (function* () {})(), d: (function () { return arguments; })(1), e: Math } } }),
  () => ({ a: { b: { c: new (class Bar extends Map {})([[1, 1]]), d: new (class Bar extends Set {})([1]) } } }),
  () => ({ a: { b: { c: Object.defineProperty({ x: 1 }, Symbol.toStringTag, { value: "T" }) } } }),
]);

show("line breaks", [
  () => ({ aaaaaaaaaaaaaaaaaaaaaaaaa: 1, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb: 2, ccccccccc: 3 }),
  () => ({ aaaaaaaaaaaaaaa: 1, bbbbbbbbbbbbbbbbbbbbbbbbbbbb: 2, ccccccccc: 3 }),
  () => ({ aaaaaaaaaaaaaaaa: 1, bbbbbbbbbbbbbbbbbbbbbbbbbbbbb: 2, ccccccccc: 3 }),
  () => ({ aaaaaaaaaaaaaaaaa: 1, bbbbbbbbbbbbbbbbbbbbbbbbbbbbb: 2, cccccccccc: 3 }),
  () => ({ aaaaaaaaaaaaaaaaaaaaaaaaa: { bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb: { ccccccccccc: { ddddddddddddddddd: 1 } } } }),
  () => new Map([["x".repeat(50), "y".repeat(50)]]), () => new Set([["x".repeat(80)]]), () => new Map([[{ a: 1 }, "y".repeat(80)]]),
  () => Object.fromEntries(numbers(130, (i) => [`k${i}`, i])), () => new Array(5).fill("x".repeat(30)),
  () => [{ a: 1, b: { c: [1, 2, 3] } }, { a: 2, b: { c: [4, 5, 6] } }],
  () => numbers(3, (i) => ({ id: i, name: `name ${i}`, tags: ["a", "b"] })),
]);

show("arrays", [
  () => [1, 2, 3], () => [, 1, , , 2], () => new Array(3), () => Object.assign([1, 2], { a: 1, "-1": 2 }), () => [undefined, , null],
  () => numbers(6), () => numbers(7), () => numbers(100), () => numbers(101), () => numbers(200), () => numbers(101, (i) => `str${i}`),
  () => numbers(27, (i) => i * 1.1), () => numbers(27, (i) => -i), () => numbers(27, (i) => 10 ** (i % 9)),
  () => numbers(27, (i) => BigInt(i) ** 3n), () => numbers(27, (i) => "x".repeat(i)), () => numbers(27, (i) => `item number ${i}`),
  () => numbers(27, (i) => ({ id: i })), () => numbers(27, (i) => [i]), () => numbers(8, () => null), () => numbers(8, () => Symbol("x")),
  () => numbers(8, () => () => 1), () => numbers(8, () => new Date(0)), () => numbers(8, (i) => `line\n${i}`),
  () => numbers(10, (i) => (i % 2 ? "x" : i)), () => numbers(8, (i) => "日本語".slice(0, (i % 3) + 1)),
  () => numbers(20, (i) => "😀".repeat(i % 4)), () => numbers(9, (i) => "e\u0301".repeat(i)),
  () => ["abc", "def", "ghi", "jkl", "mno", "pqr", "stu"], () => [1, 22, 333, 4444, 55555, 666666, 7777777],
  () => [1.5, -22, 333, 4444, 55555, 666666, "7777777"], () => [undefined, null, undefined, null, undefined, null, undefined],
  () => [{}, {}, {}, {}, {}, {}, {}], () => [[[1, 2]], [3, 4], [1, 2], [3, 4], [1, 2], [3, 4], [1, 2]],
  () => ["a", "b", "c", "d", "e", "f", "x".repeat(60)], () => [, , , , , , , 1, , , 2, , 3, 4, 5, , 6, 7, 8],
  () => Object.assign(numbers(9), { k: 1, j: 2 }), () => Object.assign(numbers(100), { k: 1 }),
  () => Object.assign(numbers(150), { k: 1 }), () => numbers(150, (i) => (i === 100 ? "x" : i)), () => ({ a: numbers(30, (i) => i * i) }),
  () => ({ a: { b: numbers(30, (i) => i * i) } }), () => { const a = []; a[1e6] = 1; return a; },
  () => { const a = []; a[4294967294] = 1; return a; }, () => { const a = numbers(200); delete a[3]; a.x = 1; return a; },
  () => { const a = []; for (let i = 0; i < 300; i += 2) a[i] = i; return a; },
  () => { const a = [1, 2, 3]; Object.defineProperty(a, 1, { get() { return 5; } }); return a; },
  () => { const a = [1, 2, 3]; Object.defineProperty(a, 1, { value: 5, enumerable: false }); return a; },
  () => (function () { return arguments; })(1, 2), () => Object.assign((function () { return arguments; })(1), { a: 1 }),
]);

show("circular", [
  () => { const a = {}; a.a = a; return a; }, () => { const a = {}; a.a = { b: { c: a } }; return a; },
  () => { const a = { x: {} }; a.x.y = a.x; a.z = a; return a; }, () => { const a = []; a.push(a, [a]); return a; },
  () => { const m = new Map(); m.set(m, m); return m; }, () => { const s = new Set(); s.add(s); return s; },
  () => { const f = () => {}; f.f = f; return f; }, () => { const d = new Date(0); d.self = d; return d; },
  () => { const a = {}, b = { a }; a.b = b; return [a, b, a]; }, () => { const o = { a: 1 }; return { o1: o, o2: o }; },
  () => { const a = { n: "a" }, b = { n: "b", a }; a.b = b; a.self = a; b.self = b; return { a, b }; },
  () => { const o = {}; const p = Promise.resolve(o); o.p = p; return p; },
]);

show("classes and prototypes", [
  () => new Foo(), () => new Foo({ a: 1 }), () => new (class { a = 1; })(), () => new (class Bar { #x = 1; y = 2; })(),
  () => Foo.prototype, () => class Bar extends Foo {}.prototype, () => Object.create(Foo.prototype), () => Object.create(null),
  () => Object.create({}), () => Object.create({ a: 1 }), () => Object.create(Object.create(null)),
  () => Object.create(Object.create(Object.create(null))),
  () => Object.create(Object.create(null, { x: { value: 1, enumerable: true } })), () => ({ constructor: Foo }),
  () => Object.create({ constructor: null }), () => Object.create({ constructor: { name: "Bar" } }), () => Object.create(Array.prototype),
  () => Object.create(Map.prototype), () => Object.create(Date.prototype), () => Array.prototype, () => Object.prototype,
  () => Map.prototype, () => Date.prototype, () => Error.prototype, () => Promise.prototype, () => Uint8Array.prototype,
  () => Object.setPrototypeOf([1], null), () => Object.setPrototypeOf(new Map([[1, 2]]), null),
  () => Object.setPrototypeOf(new Set([1]), null), () => Object.setPrototypeOf(new Date(0), null), () => Object.setPrototypeOf(/a/, null),
  () => Object.setPrototypeOf(Promise.resolve(4), null), () => Object.setPrototypeOf(new Uint8Array(2), null),
  () => Object.setPrototypeOf(new Number(2), null), () => new (class Bar extends Array {})(1, 2, 3),
  () => new (class Bar extends Map {})([[1, 2]]), () => new (class Bar extends Set {})([1]), () => new (class Bar extends Date {})(0),
  () => new (class Bar extends RegExp {})("a"), () => new (class Bar extends Promise {})(() => {}),
  () => new (class Bar extends Uint8Array {})(2), () => new (class Bar extends Number {})(3), () => new (class extends Map {})(),
  () => new (class Bar { get [Symbol.toStringTag]() { return "tag"; } })(),
  () => new (class Bar { get [Symbol.toStringTag]() { return "Bar"; } })(),
  () => new (class Bar { get [Symbol.toStringTag]() { return "a.Bar"; } })(),
  () => new (class Bar { get [Symbol.toStringTag]() { throw 1; } })(), () => ({ [Symbol.toStringTag]: "own" }),
  () => Object.defineProperty({}, Symbol.toStringTag, { value: "own" }),
  () => Object.defineProperty([1], Symbol.toStringTag, { value: "own" }), () => Math, () => JSON, () => Reflect, () => Atomics,
]);

show("functions", [
  () => function foo() {}, () => function () {}, () => () => {}, () => async () => {}, () => async function foo() {},
  () => function* foo() {}, () => async function* foo() {}, () => class Bar {}, () => class {}, () => class Bar extends Foo {},
  () => class extends Foo {}, () => class Bar extends null {}, () => class Bar { static x = 1; }, () => class Bar { static name = "x"; },
  () => Object.assign(() => {}, { a: 1 }), () => (function foo() {}).bind(), () => Object.setPrototypeOf(function foo() {}, null),
  () => Object.setPrototypeOf(class Bar {}, null), () => Object.setPrototypeOf(function foo() {}, Foo.prototype),
  () => Object.defineProperty(function foo() {}, "name", { value: "a b" }), () => ({ class() {} }).class,
  () => ({ class /* ( */ () {} }).class, () => Symbol, () => Math.max, () => Function.prototype,
  () => new (class Bar extends Function {})(), () => Object.defineProperty(function foo() {}, Symbol.toStringTag, { value: "tag" }),
  () => ({ e: function () {}, f() {}, async h() {}, *i() {}, async *j() {}, k: class {}, l: class L {} }),
]);

show("collections", [
  () => new Map(), () => new Set(), () => new Map([[1, 2], ["a", { b: 1 }]]), () => new Set([1, "a", [1, 2]]),
  () => new Map(numbers(8, (i) => [i, i])), () => new Set(numbers(101)), () => new Map(numbers(101, (i) => [i, i])),
  () => ({ s: new Set(numbers(30, (i) => `value${i}`)) }), () => new Map([[{ a: { b: { c: 1 } } }, { a: { b: { c: 1 } } }]]),
  () => Object.assign(new Map([[1, 2]]), { a: 1 }), () => Object.assign(new Set([1]), { a: 1 }), () => new Map([[1, 2]]).entries(),
  () => new Map([[1, 2]]).keys(), () => new Map([["a", [1, 2]]]).values(), () => new Set([1, 2]).values(),
  () => new Set([1, 2]).entries(), () => new Map().entries(), () => new Set().values(),
  () => new Map([["x".repeat(50), "y".repeat(50)]]).entries(),
  () => { const i = new Map([[1, 2], [3, 4]]).values(); i.next(); return i; }, () => [1, 2][Symbol.iterator](),
  () => "ab"[Symbol.iterator](), () => "ab".matchAll(/a/g), () => [1].values().map((x) => x), () => new WeakMap(), () => new WeakSet(),
  () => new WeakRef({}), () => (function* () {})(), () => (async function* () {})(), () => Object.assign((function* () {})(), { a: 1 }),
]);

show("buffers", [
  () => new Uint8Array(), () => new Uint8Array(3), () => new Uint8Array(7), () => new Uint8Array(120),
  () => new Float64Array([1.5, -0, NaN, 1e21]), () => new Float16Array(2), () => new BigInt64Array([1n, -2n]),
  () => new BigUint64Array(numbers(7, BigInt)), () => Object.assign(new Uint8Array(2), { a: 1 }), () => new ArrayBuffer(0),
  () => new ArrayBuffer(3), () => new ArrayBuffer(60), () => new ArrayBuffer(101), () => new Uint8Array([1, 171, 255]).buffer,
  () => Object.assign(new ArrayBuffer(3), { a: 1 }), () => { const b = new ArrayBuffer(3); b.transfer(); return b; },
  () => { const b = new ArrayBuffer(3); const u = new Uint8Array(b); b.transfer(); return u; }, () => new DataView(new ArrayBuffer(3), 1),
  () => Object.assign(new DataView(new ArrayBuffer(1)), { a: 1 }),
]);

show("wrappers and others", [
  () => new Date(0), () => new Date(NaN), () => Object.assign(new Date(0), { a: 1 }), () => /a\/b/dgimsuy, () => /[x]/v,
  () => Object.assign(/a/, { x: 1 }), () => new Boolean(false), () => new Number(-0), () => new String("abc"),
  () => Object.assign(new String("abc"), { x: 1 }), () => Object(Symbol("x")), () => Object(1n),
  () => Promise.resolve({ a: { b: { c: {} } } }), () => new Promise(() => {}), () => Object.assign(Promise.resolve(1), { a: 1 }),
  () => { const p = Promise.reject(1); p.catch(() => {}); return p; }, () => Object.freeze({ a: 1 }),
]);

const traps = new Proxy({}, { get() { throw new Error("a trap was called"); } });
show("proxies", [
  () => new Proxy({ a: 1 }, {}), () => new Proxy([1, 2], traps), () => new Proxy(function f() {}, traps),
  () => new Proxy(new Map([[1, 2]]), traps), () => new Proxy(new Proxy({ a: 1 }, traps), traps),
  () => ({ p: new Proxy(new Foo({ a: 1 }), traps) }), () => new Proxy(class Bar {}, traps),
  () => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy; },
  () => { const r = Proxy.revocable({}, {}); r.revoke(); return [r.proxy]; },
  () => { const r = Proxy.revocable([], {}); r.revoke(); return new Proxy(r.proxy, {}); },
  () => ({ a: { b: { p: new Proxy({ a: 1 }, traps) } } }), () => { const o = {}; o.p = new Proxy(o, traps); return o; },
  () => { const o = {}; const p = new Proxy(o, traps); o.p = p; return [p, o]; },
  () => [new Proxy({ a: "x".repeat(40), b: "y".repeat(40) }, traps)], () => new Proxy({ [custom]() { return "custom"; } }, {}),
]);

show("custom inspection", [
  () => ({ [custom](depth, options, inspect) { return `${depth} ${Object.keys(options)} ${inspect.name}`; } }),
  () => ({ a: { [custom](depth, options) { return `${depth} ${options.depth}`; } } }),
  () => ({ a: { [custom]() { return { x: 1, y: [1] }; } } }), () => ({ a: { [custom]() { return "a\nb\nc"; } } }),
  () => ({ a: { [custom]() { return this; } } }), () => ({ a: { [custom]() { return null; } } }),
  () => ({ a: { [custom]() { return 12; } } }), () => ({ a: { [custom]() { return () => 1; } } }), () => ({ a: { [custom]: 5 } }),
  () => ({ a: { b: { c: { [custom](depth) { return `${depth}`; } } } } }),
  () => ({ a: { b: { c: { d: { [custom]: () => "never" } } } } }),
  () => ({ a: { [custom](depth, options, inspect) { return inspect({ q: { w: { e: { r: 1 } } } }, options); } } }),
  () => ({ a: { [custom](depth, options, inspect) { return inspect([1, [2, [3]]], { depth: 0 }); } } }),
  () => ({ a: { [custom](depth, options) { return options.stylize("abc", "string"); } } }),
  () => { const o = {}; o.a = { [custom]() { return o; } }; return o; }, () => class Bar { static [custom]() { return "static"; } },
  () => class Bar { [custom]() { return "instance"; } }.prototype, () => new (class Bar { [custom]() { return "instance"; } })(),
]);

Error.stackTraceLimit = 0;
show("errors", [
  () => new Error("x"), () => new Error(""), () => new Error("a\nb"), () => new TypeError("x"),
  () => Object.assign(new Error("x"), { a: 1, b: { c: 1 } }), () => new Error("x", { cause: new TypeError("y") }),
  () => new Error("x", { cause: { a: 1 } }), () => new Error("x", { cause: undefined }),
  () => new Error("x", { cause: new Error("y", { cause: "z" }) }), () => Object.assign(new Error("x"), { cause: 5 }),
  () => new AggregateError([new Error("1"), 2], "msg"), () => new AggregateError([]), () => ({ e: new Error("x") }),
  () => [new Error("a\nb")], () => ({ a: { b: { c: new Error("x") } } }),
  () => ({ a: { b: { c: Object.assign(new Error("x"), { z: 1 }) } } }), () => { const e = new Error("x"); e.self = e; return e; },
  () => new (class Bar extends Error {})("x"), () => new (class BarError extends Error {})("x"),
  () => new (class Bar extends Error { name = "Bar"; })("x"), () => new (class Bar extends TypeError {})("x"),
  () => new (class extends Error {})("x"),
  () => new (class ValidationError extends Error { name = "ValidationError"; field = "f"; })("bad"), () => Object.create(Error.prototype),
  () => Object.setPrototypeOf(new Error("x"), null), () => Object.setPrototypeOf(new TypeError("x"), Foo.prototype),
  () => Object.defineProperty(new Error("x"), Symbol.toStringTag, { value: "tag" }),
  () => Object.assign(new Error("x"), { name: "Renamed" }), () => Object.assign(new Error("x"), { name: "TypeError", code: "ERR_X" }),
  () => withStack(new Error("x"), ""), () => withStack(new Error("x"), undefined), () => withStack(new Error("x"), "custom stack"),
  () => withStack(new Error("x"), `Error: x${frames(2)}`), () => ({ a: withStack(new Error("x"), `Error: x${frames(2)}`) }),
  () => Object.assign(withStack(new Error("x"), `Error: x${frames(2)}`), { a: 1 }),
  () => withStack(new Error("a\nb"), `Error: a\nb${frames(2)}`), () => ({ a: withStack(new Error("a\nb"), `Error: a\nb${frames(2)}`) }),
  () => Object.assign(withStack(new Error("o"), `Error: o${frames(6)}`), { cause: withStack(new Error("i"), `Error: i${frames(6)}`) }),
  () => Object.assign(withStack(new Error("o"), `Error: o${frames(3)}`), { cause: withStack(new Error("i"), `Error: i${frames(3)}`) }),
  () => Object.assign(withStack(new Error("o"), `Error: o\n    at a${frames(4)}\n    at z`), {
    cause: withStack(new Error("i"), `Error: i\n    at b${frames(4)}`),
  }),
  () => Object.defineProperty(new Error("x"), "stack", { get() { throw 1; } }),
  () => Object.defineProperty(new Error("x"), "cause", { get() { throw 1; } }),
]);
Error.stackTraceLimit = 10;

run("format", [
  () => console.log(), () => console.log(""), () => console.log("a", "b", 1, -0, 1n, null, undefined, Symbol("x"), { a: "b" }, ["c"]),
  () => console.log(1, "%s", "b"), () => console.log({ a: 1 }, "x"), () => console.log("a\n", "b"), () => console.log(["a\nb"], "x"),
  () => console.log("%s %s %s %s", "a", 1, -0, 1n), () => console.log("%s %s %s", Symbol("a"), null, undefined),
  () => console.log("%s %s", {}, { a: { b: 1 } }), () => console.log("%s", [1, [2, [3]]]),
  () => console.log("%s %s", function foo() {}, class A {}), () => console.log("%s %s", new Date(0), /x/),
  () => console.log("%s", { toString() { return "own"; } }),
  () => console.log("%s", new (class A { toString() { return "of a class"; } })()), () => console.log("%s", new (class A {})()),
  () => console.log("%s", Object.create(null)), () => console.log("%s", { toString: 5 }),
  () => console.log("%s", { [Symbol.toPrimitive]() { return "primitive"; } }),
  () => console.log("%s", Object.create({ toString() { return "inherited"; } })),
  () => console.log("%s %s %s", new String("abc"), new Number(5), new Map([[1, 2]])), () => console.log("%s", new Proxy({ a: 1 }, {})),
  () => console.log("%d %d %d %d %d", 1, "1.5", -0, 1n, "abc"), () => console.log("%d %d %d %d", null, undefined, {}, Symbol("a")),
  () => console.log("%d %d %d", { valueOf() { return 5; } }, [5], new Date(5)),
  () => console.log("%i %i %i %i %i", 1.7, "42px", -0.5, 1n, "0x1f"), () => console.log("%i %i %i", null, {}, Symbol("a")),
  () => console.log("%f %f %f %f %f", 1.7, "42.5px", -0, 1n, [5.5]), () => console.log("%f %f", null, Symbol("a")),
  () => console.log("%j %j %j", { a: 1 }, "s", undefined), () => console.log("%j", { toJSON() { return "to JSON"; } }),
  () => { const o = {}; o.o = o; console.log("%j", o); }, () => console.log("%o", { a: 1 }), () => console.log("%o", [1, , 3]),
  () => console.log("%o", function f() {}), () => console.log("%o", { f() {} }),
  () => console.log("%o", class A { static x = 1; m() {} }),
  () => console.log("%o", new (class A { x = 1; m() {} get g() { return 1; } })()),
  () => console.log("%o", new (class A { get g() { return 1; } })()), () => console.log("%o %o", "s", 1),
  () => console.log("%o", new Uint8Array(2)), () => console.log("%o", new Proxy({ a: 1 }, {})),
  () => console.log("%o", { a: { b: { c: { d: { e: { f: 1 } } } } } }), () => console.log("%o", async () => {}),
  () => console.log("%o", function* g() {}), () => console.log("%o %o", /a/g, new String("ab")),
  () => console.log("%o", new WeakMap([[{ a: 1 }, 1]])), () => console.log("%O %O", { a: { b: { c: { d: 1 } } } }, "s"),
  () => console.log("%O", new Proxy({ a: 1 }, {})), () => console.log("a%cb%cc", "css", "css", "rest"), () => console.log("%%"),
  () => console.log("%% %s", "a"), () => console.log("%%s", "a"), () => console.log("%%%s%%", "a"), () => console.log("100%", "a"),
  () => console.log("%x %", "a"), () => console.log("%s %s", "a"), () => console.log("%s"), () => console.log("%s", "a", "b", { c: 1 }),
  () => console.log("%1s %.2f", 1, 2),
]);

run("console", [
  () => console.info("info"), () => console.debug("debug"), () => console.dirxml({ a: 1 }, "%s"),
  () => { const { log } = console; log("detached"); }, () => console.log([1, 2, 3].map(console.log.bind(null, "bound"))),
  () => console.dir({ a: { b: { c: { d: {} } } } }), () => console.dir({ a: { b: 1 } }, { depth: 0 }),
  () => console.dir({ a: { b: { c: { d: { e: {} } } } } }, { depth: null }), () => console.dir("str"),
  () => console.dir([1], { showHidden: true }), () => console.dir({ [custom]() { return "not called"; } }),
  () => console.dir({ b: 1, a: 2, c: [2, 1] }, { sorted: true }), () => console.dir([1, { a: 1 }], { compact: false }),
  () => console.dir(numbers(9), { breakLength: 20 }), () => console.dir(numbers(5), { maxArrayLength: 2 }),
  () => console.dir(["abcdefgh"], { maxStringLength: 3 }),
  () => { console.count(); console.count("x"); console.count(); console.countReset(); console.count(); console.count(undefined); },
  () => {
    console.group("outer %s", "x");
    console.log("in\nner");
    console.group();
    console.log({ a: 1 });
    console.groupEnd();
    console.groupEnd();
    console.log("out");
  },
  () => {
    console.group();
    console.log({ aaaaaaaaaaaaaaaaaaaaaaaaa: 1, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb: 2, cc: 3 });
    console.table([[1]]);
    console.log("");
    console.groupEnd();
  },
  () => { console.groupCollapsed("c"); console.dir([1]); console.groupEnd(); console.groupEnd(); console.log("still fine"); },
  () => console.log(console.log("returns")),
  () => console.log(Object.prototype.toString.call(console), console.log.name, console.log.length, "prototype" in console.log),
  () => console.log(Object.getOwnPropertyDescriptor(console, "table"), Object.getOwnPropertyDescriptor(console, Symbol.toStringTag)),
  () => console.log(Object.keys(console).slice(0, 19)), () => console.clear(),
]);

// ---- labels that can't be converted
const broken = { toString() { throw new Error("no label"); } };
const thrown = (act) => {
  try {
    act();
    console.log("no error");
  } catch (error) {
    console.log(error.name, error.message);
  }
};
run("labels", [
  () => thrown(() => console.count(broken)), () => thrown(() => console.count(Symbol("s"))), () => thrown(() => console.countReset(broken)),
  () => thrown(() => console.countReset(Symbol("s"))), () => thrown(() => console.time(broken)), () => thrown(() => console.time(Symbol("s"))),
  () => thrown(() => console.timeEnd(broken)), () => thrown(() => console.timeEnd(Symbol("s"))), () => thrown(() => console.timeLog(broken)),
  () => thrown(() => console.timeLog(Symbol("s"))), () => thrown(() => console.group(broken)), () => console.groupEnd(), () => thrown(() => console.groupCollapsed(Symbol("s"))),
  () => console.groupEnd(), () => thrown(() => console.table([{ a: 1 }], [broken])), () => thrown(() => console.table([{ a: 1 }], ["a", Symbol("s")])),
  () => thrown(() => console.table([{ a: 1 }], {})), () => thrown(() => console.table([{ a: 1 }], "a")), () => thrown(() => console.table([], null)),
  () => thrown(() => console.table([{ a: 1 }], [{ toString: () => "a" }])),
  () => { console.count({ toString: () => "own" }); console.count("own"); console.count(null); console.count(5n); },
  () => thrown(() => console.dir(broken)), () => thrown(() => console.dirxml(broken)),
]);

run("table", [
  () => console.table([[1, 2], [3, 4]]), () => console.table([{ a: 1, b: 2 }, { a: 3, c: 4 }]),
  () => console.table([1, "b", null, undefined, -0, 1n, Symbol("x")]), () => console.table(["a", { x: 1 }]),
  () => console.table({ a: 1, b: 2 }), () => console.table({ a: { x: 1 }, b: { y: 2 } }), () => console.table([]),
  () => console.table({}), () => console.table([[]]), () => console.table([{}, { a: undefined }]),
  () => console.table(new Map([["a", 1], ["b", { x: 1 }]])), () => console.table(new Set([1, "x"])),
  () => console.table(new Map([[1, 2]]).entries()), () => console.table(new Map([[1, 2]]).keys()),
  () => console.table(new Set([1]).values()), () => console.table(5), () => console.table("str"), () => console.table(null),
  () => console.table(undefined), () => console.table(function f() {}), () => console.table([function f() {}]),
  () => console.table([{ a: { b: { c: 1 } } }, { a: { b: 1, c: 2, d: 3 } }]), () => console.table([{ a: [1, 2, 3, 4], e: [[1], 2] }]),
  () => console.table([{ a: "日本", b: "e\u0301" }]), () => console.table(["日本語", "a", "😀"]), () => console.table([{ "😀": "😀" }]),
  () => console.table(new Uint8Array([1, 2])), () => console.table([{ a: "x\ny", b: "\x1b[31m" }]),
  () => console.table([new Date(0), new Foo({ q: 1 })]), () => console.table([, 1]), () => console.table([{ get a() { return 1; } }]),
  () => console.table(new Proxy([1, { a: 1 }], {})), () => console.table(Object.assign([1], { z: 5 })),
  () => console.table([{ b: 1, 2: 1, 1: 1 }]), () => console.table([{ a: 1, b: 2 }, { a: 3, c: 4 }], ["b"]),
  () => console.table([{ a: 1 }], ["z", "a", "a"]), () => console.table([{ a: 1 }], []), () => console.table([1, 2], ["a"]),
  () => console.table([[1, 2]], [1]), () => console.table(new Map([["a", { x: 1, y: 2 }]]), ["x"]),
  () => console.table([{ a: "x".repeat(50) }]), () => console.table([{ [Symbol("s")]: 1 }]),
]);
