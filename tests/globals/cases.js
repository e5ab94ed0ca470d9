// The web's other globals, case by case. Prints the same bytes under Node 26 and under Heapstead: run it in both and compare.
const show = (value) => {
  if (value === undefined) return "undefined";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol") return String(value);
  return JSON.stringify(value, (_, inner) => (inner === undefined ? "undefined" : typeof inner === "bigint" ? `${inner}n` : Object.is(inner, -0) ? "-0" : typeof inner === "number" && !Number.isFinite(inner) ? String(inner) : inner)) ?? String(value);
};
const fails = (run) => {
  try {
    return `no error: ${show(run())}`;
  } catch (error) {
    return `${error?.name}: ${error?.message}${error?.code === undefined ? "" : ` [${error.code}]`}`;
  }
};
const kind = (run) => {
  try {
    return `no error: ${show(run())}`;
  } catch (error) {
    return error.name;
  }
};
const bytes = (...list) => new Uint8Array(list);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const cases = [];
const check = (name, run) => cases.push([name, run]);

// ---- TextDecoder: every label of the Encoding standard's encodings
const labels = {
  "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8", ibm866: "866 cp866 csibm866 ibm866", "iso-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
  "iso-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 latin3", "iso-8859-4": "csisolatin4 iso-8859-4 latin4", "iso-8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144", "iso-8859-6": "arabic asmo-708 csiso88596e csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i",
  "iso-8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 sun_eu_greek", "iso-8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e visual", "iso-8859-8-i": "csiso88598i iso-8859-8-i logical", "iso-8859-10": "csisolatin6 iso-8859-10 l6 latin6", "iso-8859-13": "iso-8859-13 iso885913", "iso-8859-14": "iso-8859-14", "iso-8859-15": "csisolatin9 iso-8859-15 l9",
  "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r", "koi8-u": "koi8-ru koi8-u", macintosh: "csmacintosh mac macintosh x-mac-roman", "windows-874": "dos-874 iso-8859-11 tis-620 windows-874", "windows-1250": "cp1250 windows-1250 x-cp1250", "windows-1251": "cp1251 windows-1251", "windows-1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 l1 latin1 us-ascii windows-1252 x-cp1252",
  "windows-1253": "windows-1253", "windows-1254": "csisolatin5 iso-8859-9 l5 latin5 windows-1254", "windows-1255": "windows-1255", "windows-1256": "windows-1256", "windows-1257": "windows-1257", "windows-1258": "windows-1258", "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
  gbk: "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk", gb18030: "gb18030", big5: "big5 big5-hkscs cn-big5 csbig5 x-x-big5", "euc-jp": "cseucpkdfmtjapanese euc-jp x-euc-jp", "iso-2022-jp": "csiso2022jp iso-2022-jp", shift_jis: "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis", "euc-kr": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ksc5601 windows-949", "utf-16be": "unicodefffe utf-16be", "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
};
for (const [name, list] of Object.entries(labels)) check(`labels of ${name}`, () => list.split(" ").flatMap((label) => [label, label.toUpperCase(), ` \t${label}\n`].map((l) => new TextDecoder(l).encoding)).filter((found) => found !== name));
check("unknown labels", () => ["", " ", "nope", "utf-7", "utf-32", "utf8\u0000", "latin2\u00a0", "iso-8859-16x", null, {}, "replacement", "iso-2022-kr", "hz-gb-2312"].map((l) => fails(() => new TextDecoder(l))));
const singleByte = ["ibm866", "iso-8859-2", "iso-8859-3", "iso-8859-4", "iso-8859-5", "iso-8859-6", "iso-8859-7", "iso-8859-8", "iso-8859-10", "iso-8859-13", "iso-8859-14", "iso-8859-15", "koi8-r", "koi8-u", "macintosh", "windows-874", "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256", "windows-1257", "windows-1258", "x-mac-cyrillic"];
const all = Uint8Array.from({ length: 256 }, (_, i) => i);
for (const name of singleByte) check(`all bytes of ${name}`, () => [new TextDecoder(name).decode(all), [...all].map((b) => { try { return new TextDecoder(name, { fatal: true }).decode(bytes(b)).length; } catch { return "x"; } }).join("")]);
// Streams of every multi-byte encoding, cut in every way, fatal or not.
const streams = {
  "utf-8": [[0x61, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0x62], [0xef, 0xbb, 0xbf, 0x61, 0xef, 0xbb, 0xbf], [0x61, 0xe2, 0x82], [0xf0, 0x9f, 0x41], [0xed, 0xa0, 0x80, 0x41], [0xc0, 0x80]],
  "utf-16le": [[0x61, 0x00, 0x3d, 0xd8, 0x00, 0xde], [0xff, 0xfe, 0x61, 0x00], [0x3d, 0xd8], [0x3d, 0xd8, 0x61, 0x00], [0x00, 0xde], [0x61]],
  "utf-16be": [[0x00, 0x61, 0xd8, 0x3d, 0xde, 0x00], [0xfe, 0xff, 0x00, 0x61], [0xd8, 0x3d, 0x00, 0x61]],
  "iso-2022-jp": [[0x61, 0x1b, 0x24, 0x42, 0x30, 0x21, 0x50, 0x4b, 0x1b, 0x28, 0x42, 0x62], [0x1b, 0x28, 0x4a, 0x5c, 0x7e, 0x61], [0x1b, 0x28, 0x49, 0x31, 0x32], [0x1b, 0x24, 0x40, 0x30, 0x21, 0x1b, 0x28, 0x42, 0x41]],
  shift_jis: [[0x61, 0x82, 0xa0, 0x88, 0x9f, 0xb1, 0x62]], "euc-jp": [[0x61, 0xa4, 0xa2, 0x8e, 0xb1, 0x8f, 0xb0, 0xa1, 0x62]], gbk: [[0x61, 0xc4, 0xe3, 0x80, 0x62]], gb18030: [[0x61, 0xc4, 0xe3, 0x81, 0x30, 0x84, 0x36, 0x62]], big5: [[0x61, 0xa7, 0x41, 0x62]], "euc-kr": [[0x61, 0xb0, 0xa1, 0x62]],
};
for (const [name, inputs] of Object.entries(streams)) {
  for (const input of inputs) {
    for (const fatal of [false, true]) {
      check(`stream of ${name}${fatal ? ", fatal" : ""}: ${input.map((b) => b.toString(16)).join(" ")}`, () => [1, 2, 3, 5].map((size) => {
        const decoder = new TextDecoder(name, { fatal });
        const out = [];
        for (let i = 0; i < input.length; i += size) out.push(fails(() => decoder.decode(bytes(...input.slice(i, i + size)), { stream: true })));
        const told = [...out, fails(() => decoder.decode())].map((text) => text.replace("no error: ", "").replace(/TypeError.*/, "bad"));
        // After an error Node's decoders differ from one another.
        return told.includes("bad") ? told.slice(0, told.indexOf("bad") + 1) : told;
      }));
    }
  }
}
for (const [name, input] of [["iso-2022-jp", [0x80]], ["iso-2022-jp", [0x1b, 0x24, 0x42, 0x50, 0x1b]], ["iso-2022-jp", [0x1b, 0x24, 0x42, 0x1b, 0x28, 0x42]], ["iso-2022-jp", [0x0e]], ["iso-2022-jp", [0x1b, 0x28, 0x49, 0x7f]], ["shift_jis", [0x82, 0x20]], ["euc-jp", [0x8f, 0xb0, 0x20]], ["big5", [0xa4, 0x3f]], ["euc-kr", [0xb0, 0x20]], ["gb18030", [0x81, 0x30, 0x41]], ["gbk", [0xff]]]) {
  check(`bad ${name}: ${input.map((b) => b.toString(16)).join(" ")}`, () => [fails(() => new TextDecoder(name, { fatal: true }).decode(bytes(...input))), fails(() => new TextDecoder(name, { fatal: true }).decode(bytes(...input), { stream: true }))]);
}
check("fatal iso-2022-jp in pieces fails where it is wrong", () => { const d = new TextDecoder("iso-2022-jp", { fatal: true }); return [d.decode(bytes(0x61, 0x1b), { stream: true }), d.decode(bytes(0x24, 0x42, 0x30), { stream: true }), d.decode(bytes(0x21), { stream: true }), kind(() => d.decode(bytes(0x1b, 0x28, 0x42, 0x80), { stream: true }))]; });
check("decoding restarts", () => { const d = new TextDecoder("shift_jis"); d.decode(bytes(0x82), { stream: true }); return [d.decode(), d.decode(bytes(0x82, 0xa0)), d.decode(bytes(0x61), { stream: true }), d.decode(bytes(0x62))]; });
check("TextDecoder options", () => [{}, null, undefined, { fatal: 1, ignoreBOM: "x" }, { fatal: 0 }, []].map((o) => { const d = new TextDecoder("utf-8", o); return [d.fatal, d.ignoreBOM]; }).concat([3, "x", true, Symbol("s")].map((o) => kind(() => new TextDecoder("utf-8", o)))));
check("TextEncoder many", () => ["\ud83d\ude00", "\ud83d", "\ude00\ud83d", "a\0b", "\u07ff\u0800\uffff"].map((s) => [...new TextEncoder().encode(s)]));
check("TextEncoder encodeInto many", () => ["abc", "é€", "😀", "a😀"].flatMap((s) => [0, 1, 2, 3, 4, 6].map((n) => Object.values(new TextEncoder().encodeInto(s, new Uint8Array(n))))));

// ---- atob and btoa
for (const text of ["", "a", "ab", "abc", "abcd", "\0", "\xff\xfe", "hello world", "\u0100", "😀"]) check(`btoa ${JSON.stringify(text)}`, () => [kind(() => btoa(text)), kind(() => atob(btoa(text)) === text)]);
for (const text of ["", " ", "YQ", "YQ=", "YQ==", "YQ===", "YWI", "YWI=", "YWJj", "Y Q = =", "Y\tQ\n", "\fYQ\r", "\vYQ", "YQ\u00a0", "A", "AB=C", "=", "==", "====", "A===", "AA=A", "/+8", "_-8", "YR==", "null", "\ud800", "aGVsbG8", "aGVsbG8=", "aGVsbG8g"]) check(`atob ${JSON.stringify(text)}`, () => { try { return [...atob(text)].map((c) => c.charCodeAt(0)); } catch (e) { return [e.name, e.code, e instanceof DOMException]; } });

// ---- structuredClone
const clones = { primitives: [1, -0, NaN, "s", true, null, undefined, 5n], boxed: [Object(1), Object("s"), Object(true)], dates: [new Date(5), new Date(NaN)], regexps: [/a/g, /b/dgimsuy], sparse: [[1, , 3], Object.assign([1], { x: 2 })], errors: [new Error("e"), new TypeError("t", { cause: { c: 1 } }), new AggregateError([1], "a"), Object.assign(new Error("n"), { name: "Custom" }), Object.assign(new Error("own"), { extra: 1 })], views: [new Uint8Array([1, 2]), new Float64Array([1.5]), new DataView(new ArrayBuffer(3), 1), new BigInt64Array(1)] };
for (const [name, values] of Object.entries(clones)) check(`structuredClone of ${name}`, () => values.map((v) => { const c = structuredClone(v); return [Object.prototype.toString.call(c), typeof c, c instanceof Error ? [c.name, c.message, c.cause, c.extra, c.errors] : c instanceof Date || c instanceof RegExp ? String(c) : ArrayBuffer.isView(c) ? [c.byteLength, c.byteOffset, c.buffer.byteLength] : c]; }));
check("structuredClone refuses", () => [() => {}, class {}, Symbol(), new WeakMap(), new WeakSet(), new WeakRef({}), Promise.resolve(), [].values(), new Map().keys(), (function* () {})(), new Proxy({}, {}), new URL("http://h"), new URLSearchParams(), new Intl.NumberFormat("en"), new FinalizationRegistry(() => {})].map((v) => { try { structuredClone(v); return "cloned"; } catch (e) { return [e.name, e.code]; } }));
check("structuredClone of getters and prototypes", () => { class A { constructor() { this.x = 1; } get y() { return 2; } } const c = structuredClone(new A()); return [c, Object.getPrototypeOf(c) === Object.prototype, structuredClone({ get z() { return 3; } }), structuredClone(Object.defineProperty({}, "h", { value: 1 }))]; });
check("structuredClone keeps identity", () => { const o = { n: 1 }, m = new Map([[o, o]]); const c = structuredClone({ a: o, b: o, m }); return [c.a === c.b, c.m.get(c.a) === c.b, c.a !== o]; });
check("structuredClone transfers", () => { const b = new ArrayBuffer(8), v = new Uint8Array(b, 2, 3); v[0] = 7; const c = structuredClone({ v, b }, { transfer: [b] }); return [b.byteLength, v.length, c.v[0], c.b === c.v.buffer, kind(() => structuredClone(1, { transfer: [c.b, c.b] }))]; });

// ---- events
check("dispatch by options", () => [{ once: true }, { passive: true }, { capture: true }, true, undefined, null].map((o) => { const t = new EventTarget(); let n = 0; const f = (e) => { n++; e.preventDefault(); }; t.addEventListener("x", f, o); const e = new Event("x", { cancelable: true }); return [t.dispatchEvent(e), t.dispatchEvent(new Event("x")), n, e.defaultPrevented]; }));
check("events of all kinds", () => [new Event("a"), new Event("a", { bubbles: 1, composed: "x" }), new CustomEvent("c", { detail: [1] }), new CustomEvent("c")].map((e) => [e.type, e.bubbles, e.composed, e.detail, e.eventPhase, e.isTrusted, e.target]));
check("listeners that throw, handled by the caller's own", () => { const t = new EventTarget(), log = []; t.addEventListener("x", { handleEvent: (e) => log.push(e.type) }); t.addEventListener("x", (e) => { try { throw new Error("in"); } catch (error) { log.push(error.message); } }); t.dispatchEvent(new Event("x")); return log; });
check("listeners added while dispatching wait", () => { const t = new EventTarget(), log = []; t.addEventListener("x", () => { log.push(1); t.addEventListener("y", () => log.push("y")); t.dispatchEvent(new Event("y")); }); t.dispatchEvent(new Event("x")); return log; });
check("removing and adding again", () => { const t = new EventTarget(), log = [], f = () => log.push("f"); t.addEventListener("x", f); t.addEventListener("x", () => log.push("g")); t.removeEventListener("x", f); t.addEventListener("x", f); t.dispatchEvent(new Event("x")); return log; });
check("signals and listeners", () => { const t = new EventTarget(), c = new AbortController(), log = []; for (const n of [1, 2, 3]) t.addEventListener("x", () => { log.push(n); if (n === 1) c.abort(); }, { signal: n === 2 ? c.signal : undefined }); t.dispatchEvent(new Event("x")); return log; });
check("AbortSignal.any order", () => { const a = new AbortController(), log = []; const one = AbortSignal.any([a.signal]), two = AbortSignal.any([one]); for (const [n, s] of [["two", two], ["one", one], ["a", a.signal]]) s.addEventListener("abort", () => log.push(n, one.aborted, two.aborted)); a.abort("r"); return [log, one.reason, two.reason]; });
check("abort reasons", () => [undefined, null, 0, "", "text", { a: 1 }].map((r) => { const c = new AbortController(); c.abort(r); const { reason } = c.signal; return reason instanceof DOMException ? [reason.name, reason.code, reason.message] : reason; }));
check("throwIfAborted", () => [AbortSignal.abort(), AbortSignal.abort(1), new AbortController().signal].map((s) => { try { s.throwIfAborted(); return "went on"; } catch (e) { return e?.name ?? e; } }));

// ---- timers and tasks
check("order of tasks", async () => { const log = []; setTimeout(() => log.push("timeout"), 0); queueMicrotask(() => log.push("micro 1")); Promise.resolve().then(() => { log.push("then 1"); queueMicrotask(() => log.push("micro 2")); }).then(() => log.push("then 2")); log.push("sync"); await sleep(15); return log; });
check("timers by their delay", async () => { const log = []; for (const d of [12, 4, 8, 0, 1]) setTimeout(() => log.push(d), d); await sleep(40); return log.map((d) => Math.max(d, 1)); });
check("intervals end themselves", async () => { const log = []; await new Promise((resolve) => { const i = setInterval(() => { log.push(log.length); if (log.length === 4) { clearInterval(i); resolve(); } }, 1); }); await sleep(5); return log; });
check("async functions and timers", async () => { const log = []; const f = async (n) => { log.push(`start ${n}`); await null; log.push(`middle ${n}`); await sleep(n); log.push(`end ${n}`); }; await Promise.all([f(9), f(1)]); return log; });
check("queueMicrotask refuses", () => [undefined, null, 1, {}].map((v) => fails(() => queueMicrotask(v))));
check("promise methods", async () => [await Promise.all([1, Promise.resolve(2)]), await Promise.allSettled([Promise.reject(1), 2]), await Promise.any([Promise.reject(1), 3]), await Promise.race([sleep(20), Promise.resolve("first")]), await Promise.any([Promise.reject(1)]).catch((e) => [e.name, e.errors])]);

// ---- DOMException
for (const name of ["IndexSizeError", "NotFoundError", "NotSupportedError", "InvalidStateError", "SyntaxError", "InvalidAccessError", "TypeMismatchError", "SecurityError", "NetworkError", "AbortError", "QuotaExceededError", "TimeoutError", "DataCloneError", "EncodingError", "OperationError", "NotAllowedError", "toString", ""]) check(`DOMException ${name}`, () => { const e = new DOMException("m", name); return [e.name, e.code, String(e), e instanceof Error]; });
check("DOMException inspected fields", () => { const e = new DOMException("m", { name: "N", cause: 0 }); return [Object.keys(e), "cause" in e, e.cause, typeof e.stack, Object.prototype.toString.call(e)]; });

// ---- performance, crypto
check("performance grows", () => { const a = performance.now(); let b = a; while (b === a) b = performance.now(); return [b > a, performance.timeOrigin > 1e12, Object.prototype.toString.call(performance)]; });
for (const [name, length] of [["SHA-1", 20], ["SHA-256", 32], ["SHA-384", 48], ["SHA-512", 64]]) check(`digest ${name} of much`, async () => { const d = new Uint8Array(await crypto.subtle.digest(name, new Uint8Array(100_000).fill(7))); return [d.length === length, [...d.slice(0, 8)]]; });
check("digest of every kind of input", async () => { const b = bytes(1, 2, 3, 4); const out = []; for (const v of [b, b.buffer, new DataView(b.buffer, 1), new Uint16Array(b.buffer), b.subarray(2)]) out.push([...new Uint8Array(await crypto.subtle.digest("SHA-1", v))].slice(0, 3)); return out; });
check("random values of every kind", () => [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array].map((C) => crypto.getRandomValues(new C(32)).some((v) => v != 0)));
check("random UUIDs", () => new Set(Array.from({ length: 100 }, () => crypto.randomUUID())).size);

// ---- Intl
const when = new Date(Date.UTC(2026, 10, 16, 21, 9, 5));
for (const locale of ["en-US", "en-GB", "de", "fr", "es", "it", "pt-BR", "nl", "sv", "pl", "ru", "uk", "tr", "el", "he", "ar", "fa", "hi", "bn", "th", "vi", "id", "ja", "ko", "zh-CN", "zh-TW"]) {
  check(`Intl in ${locale}`, () => [new Intl.NumberFormat(locale, { style: "currency", currency: "EUR" }).format(1234567.891), new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short", timeZone: "Asia/Kolkata" }).format(when), new Intl.RelativeTimeFormat(locale, { numeric: "auto" }).format(-1, "day"), new Intl.ListFormat(locale).format(["A", "B", "C"]), new Intl.PluralRules(locale).select(2), new Intl.DisplayNames(locale, { type: "region" }).of("JP"), ["z", "a", "ä", "Z"].sort(new Intl.Collator(locale).compare).join(""), (0.256).toLocaleString(locale, { style: "percent" }), when.toLocaleDateString(locale, { timeZone: "UTC" }), new Intl.DurationFormat(locale).format({ hours: 2, minutes: 5 })]);
}
check("Intl time zones", () => ["UTC", "Europe/London", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "+05:45", "-0330"].map((timeZone) => kind(() => new Intl.DateTimeFormat("en", { timeZone, dateStyle: "short", timeStyle: "long" }).format(when))));
check("case and normal forms", () => ["ıI".toLocaleLowerCase("tr"), "i".toLocaleUpperCase("tr"), "ß".toUpperCase(), "é".normalize("NFD").length, "ﬁ".normalize("NFKC"), "Σ".toLowerCase(), "ΑΣ".toLowerCase()]);

(async () => {
  for (const [name, run] of cases) {
    console.log(`--- ${name}`);
    try {
      console.log(show(await run()));
    } catch (error) {
      console.log(`FAILED ${error.name}: ${error.message}`);
    }
  }
  console.log(`--- ${cases.length} checks`);
})();
