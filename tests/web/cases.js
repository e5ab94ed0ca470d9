// The web APIs and Intl as code sees them. Prints the same bytes under Node 26 and under Heapstead: run it in both and compare.
const show = (value) => {
  if (typeof value === "string") return value;
  if (value === undefined) return "undefined";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol" || typeof value === "function") return String(value);
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  return JSON.stringify(value);
};
const hex = (bytes) => Array.from(new Uint8Array(bytes.buffer ?? bytes), (b) => b.toString(16).padStart(2, "0")).join(" ");
const bytes = (...list) => new Uint8Array(list);
const fails = (f) => {
  try {
    return `no error: ${show(f())}`;
  } catch (error) {
    return `${error.name}: ${error.message}${error.code === undefined ? "" : ` [${error.code}]`}`;
  }
};
const kind = (f) => {
  try {
    return `no error: ${show(f())}`;
  } catch (error) {
    return error.name;
  }
};
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const cases = [];
const check = (name, run) => cases.push([name, run]);

// ---- DOMException
check("DOMException names and codes", () => ["IndexSizeError", "DOMStringSizeError", "HierarchyRequestError", "NoDataAllowedError",
  "InUseAttributeError", "ValidationError", "URLMismatchError", "AbortError", "TimeoutError", "QuotaExceededError", "DataCloneError", "Nope"]
  .map((name) => [name, new DOMException("m", name).code]));
check("DOMException constants", () => [DOMException.INDEX_SIZE_ERR, DOMException.INUSE_ATTRIBUTE_ERR, DOMException.URL_MISMATCH_ERR,
  DOMException.DATA_CLONE_ERR, DOMException.prototype.SYNTAX_ERR, new DOMException().NO_DATA_ALLOWED_ERR]);
check("DOMException constants in all", () => Object.keys(DOMException).length);
check("DOMException defaults", () => [new DOMException().name, new DOMException().message, new DOMException("a").name, new DOMException().code]);
check("DOMException text", () => String(new DOMException("broken", "SyntaxError")));
check("DOMException is an Error", () => [new DOMException() instanceof Error, Object.getPrototypeOf(DOMException.prototype) === Error.prototype,
  Object.prototype.toString.call(new DOMException())]);
check("DOMException stack", () => new DOMException("m", "DataError").stack.split("\n")[0]);
check("DOMException with options", () => { const e = new DOMException("m", { name: "N", cause: 7 }); return [e.name, e.cause, e.code]; });
check("DOMException without cause", () => "cause" in new DOMException("m", "n"));
check("DOMException converts", () => [new DOMException(5, 6).message, new DOMException(5, 6).name, new DOMException(null).message]);
check("DOMException own keys", () => Reflect.ownKeys(new DOMException("a", "b")));
check("DOMException read only", () => kind(() => { "use strict"; new DOMException("a").name = "x"; }));
check("DOMException as a function", () => kind(() => DOMException("a")));
check("QuotaExceededError", () => { const e = new QuotaExceededError("q", { quota: 3, requested: 4 }); return [e.name, e.code, e.quota, e.requested, e instanceof DOMException]; });

// ---- Event
check("Event fields", () => { const e = new Event("x", { bubbles: true, cancelable: true, composed: true });
  return [e.type, e.bubbles, e.cancelable, e.composed, e.defaultPrevented, e.isTrusted, e.target, e.currentTarget, e.eventPhase, e.returnValue, e.cancelBubble, e.srcElement]; });
check("Event timeStamp", () => typeof new Event("x").timeStamp);
check("Event converts its type", () => [new Event(5).type, new Event(null).type, new Event(undefined).type, new Event({ toString: () => "o" }).type]);
check("Event needs a type", () => fails(() => new Event()));
check("Event options", () => fails(() => new Event("x", 3)));
check("Event null options", () => new Event("x", null).bubbles);
check("Event preventDefault", () => { const a = new Event("x"), b = new Event("x", { cancelable: true }); a.preventDefault(); b.preventDefault(); return [a.defaultPrevented, b.defaultPrevented, b.returnValue]; });
check("Event constants", () => [Event.NONE, Event.CAPTURING_PHASE, Event.AT_TARGET, Event.BUBBLING_PHASE]);
check("Event initEvent", () => { const e = new Event("x"); e.initEvent("y", true, true); return [e.type, e.bubbles, e.cancelable]; });
check("Event tag", () => [Object.prototype.toString.call(new Event("x")), Event.length, Event.name]);
check("Event as a function", () => fails(() => Event("x")));
check("Event receiver", () => kind(() => Event.prototype.type));
check("CustomEvent", () => { const e = new CustomEvent("c", { detail: { a: 1 }, cancelable: true }); return [e.type, e.detail, e.cancelable, e instanceof Event, new CustomEvent("d").detail]; });
check("Event composedPath", () => { const t = new EventTarget(), e = new Event("x"), seen = []; t.addEventListener("x", () => seen.push(e.composedPath().length, e.composedPath()[0] === t)); t.dispatchEvent(e); return [seen, e.composedPath()]; });

// ---- EventTarget
const dispatched = (set, event = new Event("x", { cancelable: true })) => {
  const log = [], target = new EventTarget();
  set(target, log);
  log.push(target.dispatchEvent(event));
  return log;
};
check("EventTarget order", () => dispatched((t, log) => { t.addEventListener("x", () => log.push(1)); t.addEventListener("x", () => log.push(2)); t.addEventListener("y", () => log.push(3)); }));
check("EventTarget duplicates", () => dispatched((t, log) => { const f = () => log.push("f"); t.addEventListener("x", f); t.addEventListener("x", f); t.addEventListener("x", f, true); }));
check("EventTarget remove", () => dispatched((t, log) => { const f = () => log.push("f"); t.addEventListener("x", f); t.removeEventListener("x", f, true); t.addEventListener("x", f, true); t.removeEventListener("x", f); }));
check("EventTarget once", () => { const t = new EventTarget(); let n = 0; t.addEventListener("x", () => n++, { once: true }); t.dispatchEvent(new Event("x")); t.dispatchEvent(new Event("x")); return n; });
check("EventTarget passive", () => dispatched((t, log) => t.addEventListener("x", (e) => { e.preventDefault(); log.push(e.defaultPrevented); }, { passive: true })));
check("EventTarget preventDefault", () => dispatched((t) => t.addEventListener("x", (e) => e.preventDefault())));
check("EventTarget handleEvent", () => dispatched((t, log) => { const o = { handleEvent(e) { log.push(this === o, e.type); } }; t.addEventListener("x", o); }));
check("EventTarget late handleEvent", () => dispatched((t, log) => { const o = {}; t.addEventListener("x", o); o.handleEvent = () => log.push("late"); }));
check("EventTarget this", () => dispatched((t, log) => t.addEventListener("x", function (e) { log.push(this === t, e.target === t, e.currentTarget === t, e.eventPhase); })));
check("EventTarget after dispatch", () => { const t = new EventTarget(), e = new Event("x"); t.dispatchEvent(e); return [e.target === t, e.currentTarget, e.eventPhase]; });
check("EventTarget stopImmediatePropagation", () => dispatched((t, log) => { t.addEventListener("x", (e) => { log.push(1); e.stopImmediatePropagation(); }); t.addEventListener("x", () => log.push(2)); }));
check("EventTarget stopPropagation", () => dispatched((t, log) => { t.addEventListener("x", (e) => { log.push(1); e.stopPropagation(); }); t.addEventListener("x", () => log.push(2)); }));
check("EventTarget removed during dispatch", () => dispatched((t, log) => { const f = () => log.push("f"); t.addEventListener("x", () => t.removeEventListener("x", f)); t.addEventListener("x", f); }));
check("EventTarget added during dispatch", () => { const t = new EventTarget(), log = []; t.addEventListener("x", () => { log.push(1); t.addEventListener("y", () => log.push(2)); }); t.dispatchEvent(new Event("x")); t.dispatchEvent(new Event("y")); return log; });
check("EventTarget signal", () => { const t = new EventTarget(), c = new AbortController(); let n = 0; t.addEventListener("x", () => n++, { signal: c.signal }); t.dispatchEvent(new Event("x")); c.abort(); t.dispatchEvent(new Event("x")); return n; });
check("EventTarget aborted signal", () => { const t = new EventTarget(); let n = 0; t.addEventListener("x", () => n++, { signal: AbortSignal.abort() }); t.dispatchEvent(new Event("x")); return n; });
check("EventTarget wrong signal", () => fails(() => new EventTarget().addEventListener("x", () => {}, { signal: {} })));
check("EventTarget wrong listener", () => fails(() => new EventTarget().addEventListener("x", 4)));
check("EventTarget missing arguments", () => fails(() => new EventTarget().addEventListener("x")));
check("EventTarget wrong event", () => fails(() => new EventTarget().dispatchEvent({})));
check("EventTarget no event", () => fails(() => new EventTarget().dispatchEvent()));
check("EventTarget recursion", () => { const t = new EventTarget(), e = new Event("x"); let text; t.addEventListener("x", () => { text = fails(() => t.dispatchEvent(e)); }); t.dispatchEvent(e); return text; });
check("EventTarget again", () => { const t = new EventTarget(), e = new Event("x"); let n = 0; t.addEventListener("x", () => n++); t.dispatchEvent(e); t.dispatchEvent(e); return n; });
check("EventTarget subclass", () => { class T extends EventTarget { ping() { return this.dispatchEvent(new Event("p")); } } const t = new T(); let n = 0; t.addEventListener("p", () => n++); t.ping(); return [n, t instanceof EventTarget, t.constructor.name]; });
check("EventTarget enumerable", () => Object.keys(EventTarget.prototype).sort());

// ---- AbortController
check("AbortController", () => { const c = new AbortController(); const before = c.signal.aborted; c.abort(); return [before, c.signal.aborted, c.signal.reason.name, c.signal.reason.message, c.signal === c.signal]; });
check("AbortController reason", () => { const c = new AbortController(); c.abort("why"); c.abort("again"); return c.signal.reason; });
check("AbortController event", () => { const c = new AbortController(), log = []; c.signal.onabort = (e) => log.push("on", e.type, e.isTrusted, e.target === c.signal); c.signal.addEventListener("abort", () => log.push("listener")); c.abort(); c.abort(); return log; });
check("AbortSignal onabort", () => { const { signal } = new AbortController(); const f = () => {}; const a = signal.onabort; signal.onabort = f; const b = signal.onabort === f; signal.onabort = null; return [a, b, signal.onabort]; });
check("AbortSignal onabort replaced", () => { const c = new AbortController(), log = []; c.signal.onabort = () => log.push(1); c.signal.onabort = () => log.push(2); c.abort(); return log; });
check("AbortSignal onabort removed", () => { const c = new AbortController(), log = []; c.signal.onabort = () => log.push(1); c.signal.onabort = null; c.abort(); return log; });
check("AbortSignal constructor", () => fails(() => new AbortSignal()));
check("AbortSignal.abort", () => [AbortSignal.abort().aborted, AbortSignal.abort(5).reason, AbortSignal.abort(null).reason, AbortSignal.abort().reason.code]);
check("AbortSignal throwIfAborted", () => [fails(() => AbortSignal.abort().throwIfAborted()), new AbortController().signal.throwIfAborted()]);
check("AbortSignal throws the reason", () => { try { AbortSignal.abort("r").throwIfAborted(); } catch (e) { return e; } return "none"; });
check("AbortSignal.any", () => { const a = new AbortController(), b = new AbortController(), s = AbortSignal.any([a.signal, b.signal]), log = [s.aborted]; s.addEventListener("abort", () => log.push("event")); b.abort("B"); log.push(s.aborted, s.reason); a.abort("A"); log.push(s.reason); return log; });
check("AbortSignal.any of aborted", () => { const s = AbortSignal.any([new AbortController().signal, AbortSignal.abort(1), AbortSignal.abort(2)]); return [s.aborted, s.reason]; });
check("AbortSignal.any of none", () => AbortSignal.any([]).aborted);
check("AbortSignal.any nested", () => { const a = new AbortController(), s = AbortSignal.any([AbortSignal.any([a.signal])]); a.abort(9); return [s.aborted, s.reason]; });
check("AbortSignal.any errors", () => [fails(() => AbortSignal.any([{}])), fails(() => AbortSignal.any())]);
check("AbortSignal.timeout errors", () => [fails(() => AbortSignal.timeout("x")), fails(() => AbortSignal.timeout(-1)), fails(() => AbortSignal.timeout(1.5))]);
check("AbortSignal.timeout", async () => { const s = AbortSignal.timeout(2); const before = s.aborted; await sleep(20); return [before, s.aborted, s.reason.name, s.reason.message, s.reason.code]; });
check("AbortSignal.timeout through any", async () => { const s = AbortSignal.any([AbortSignal.timeout(2)]); await sleep(20); return s.reason.name; });

// ---- timers
check("setTimeout type errors", () => [undefined, null, 5, -0, "abc".repeat(20), {}, [], true, 5n, Symbol("x")].map((v) => fails(() => setTimeout(v))));
check("queueMicrotask type error", () => fails(() => queueMicrotask("x")));
check("setImmediate type error", () => fails(() => setImmediate()));
check("timer order", async () => { const log = []; setTimeout(() => log.push("c"), 9); setTimeout(() => log.push("b"), 5); setTimeout(() => log.push("a"), 1); await sleep(25); return log; });
check("equal timers keep their order", async () => { const log = []; for (let i = 0; i < 9; i++) setTimeout(() => log.push(i), 3); await sleep(20); return log; });
check("strange delays", async () => { const log = []; [NaN, -5, undefined, null, "x", 2 ** 31, Infinity, "1", 0.5, {}].forEach((d, i) => setTimeout(() => log.push(i), d)); await sleep(20); return log.sort(); });
check("timer arguments", async () => { const log = []; setTimeout((...a) => log.push(a), 1, "x", 2); setImmediate((...a) => log.push(a), 3); await sleep(10); return log.length === 2 && [log.find((a) => a.length === 2), log.find((a) => a.length === 1)]; });
check("clearTimeout", async () => { const log = []; const t = setTimeout(() => log.push("no"), 1); clearTimeout(t); clearTimeout(t); clearTimeout(undefined); clearTimeout(null); clearTimeout("nonsense"); clearTimeout({}); clearTimeout(-1); await sleep(8); return log; });
check("clear in callback", async () => { const log = []; let b; setTimeout(() => { log.push("a"); clearTimeout(b); }, 2); b = setTimeout(() => log.push("b"), 2); await sleep(12); return log; });
check("setInterval", async () => { let n = 0; await new Promise((resolve) => { const i = setInterval((x) => { n += x; if (n === 6) { clearInterval(i); resolve(); } }, 1, 2); }); await sleep(8); return n; });
check("clearInterval by clearTimeout", async () => { let n = 0; const i = setInterval(() => { n++; clearTimeout(i); }, 1); await sleep(10); return n; });
check("immediates before the next", async () => { const log = []; await new Promise((resolve) => setImmediate(() => { log.push(1); setImmediate(() => { log.push(3); resolve(); }); log.push(2); })); return log; });
check("clearImmediate", async () => { const log = []; clearImmediate(setImmediate(() => log.push("no"))); setImmediate(() => log.push("yes")); await sleep(5); return log; });
check("timer then immediate inside a timer", async () => { const log = []; await new Promise((resolve) => setTimeout(() => { setTimeout(() => { log.push("timer"); resolve(); }, 0); setImmediate(() => log.push("immediate")); }, 1)); return log; });
check("microtasks before timers", async () => { const log = []; setTimeout(() => log.push("timer"), 0); setImmediate(() => log.push("immediate")); queueMicrotask(() => { log.push("micro"); Promise.resolve().then(() => log.push("nested")); }); await sleep(10); return log.slice(0, 2).concat(log.slice(2).sort()); });
check("microtasks between timers", async () => { const log = []; for (const n of [1, 2]) setTimeout(() => { log.push(`t${n}`); Promise.resolve().then(() => log.push(`m${n}`)); }, 2); await sleep(12); return log; });
check("rearming immediates don't starve timers", async () => { let on = true, n = 0; const again = () => { n++; if (on) setImmediate(again); }; setImmediate(again); await sleep(5); on = false; return n > 0; });
check("many timers", async () => { let n = 0; const ids = []; for (let i = 0; i < 2000; i++) ids.push(setTimeout(() => n++, i % 7)); ids.filter((_, i) => i % 2).forEach((t) => clearTimeout(t)); await sleep(60); return n; });
check("global functions", () => ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate", "queueMicrotask", "structuredClone", "atob", "btoa"].map((name) => typeof globalThis[name]));

// ---- TextEncoder, TextDecoder
check("TextEncoder", () => ["", "a", "é", "€", "😀", "\ud800", "a\udc00b"].map((s) => hex(new TextEncoder().encode(s))));
check("TextEncoder converts", () => [undefined, null, 5, true].map((v) => hex(new TextEncoder().encode(v))));
check("TextEncoder encoding", () => [new TextEncoder().encoding, Object.prototype.toString.call(new TextEncoder())]);
check("TextEncoder encodeInto", () => { const b = new Uint8Array(5); const r = new TextEncoder().encodeInto("a€😀", b); return [r.read, r.written, hex(b)]; });
check("TextEncoder encodeInto view", () => { const b = new Uint8Array(6); const r = new TextEncoder().encodeInto("xyz", b.subarray(2, 4)); return [r.read, r.written, hex(b)]; });
check("TextEncoder encodeInto errors", () => [fails(() => new TextEncoder().encodeInto("a", [])), fails(() => new TextEncoder().encodeInto(4, bytes(1)))]);
check("TextDecoder", () => new TextDecoder().decode(bytes(0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80)));
check("TextDecoder malformed", () => [[0xff], [0xc0, 0x80], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf0, 0x80, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x61, 0xe2, 0x61]].map((b) => new TextDecoder().decode(bytes(...b))));
check("TextDecoder fatal", () => [fails(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes(0xff))), new TextDecoder("utf-8", { fatal: true }).decode(bytes(0x61))]);
check("TextDecoder fatal at the end", () => { const d = new TextDecoder("utf-8", { fatal: true }); return [d.decode(bytes(0x61, 0xe2), { stream: true }), kind(() => d.decode())]; });
check("TextDecoder fields", () => { const d = new TextDecoder("UTF8", { fatal: true, ignoreBOM: true }); return [d.encoding, d.fatal, d.ignoreBOM]; });
check("TextDecoder labels", () => ["utf8", "unicode-1-1-utf-8", "ascii", "latin1", "iso-8859-2", "utf-16", "utf-16be", "sjis", "gb2312", "gb18030", "big5-hkscs", "euc-jp", "ks_c_5601-1987", "koi", "x-cp1251", " utf-8 \n"].map((l) => new TextDecoder(l).encoding));
check("TextDecoder unknown label", () => [fails(() => new TextDecoder("nope")), kind(() => new TextDecoder("replacement"))]);
check("TextDecoder BOM", () => [new TextDecoder().decode(bytes(0xef, 0xbb, 0xbf, 0x61)).length, new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes(0xef, 0xbb, 0xbf, 0x61)).length, new TextDecoder().decode(bytes(0x61, 0xef, 0xbb, 0xbf)).length]);
check("TextDecoder stream utf-8", () => { const all = new TextEncoder().encode("\ufeffa€😀ß\u{10ffff}"), out = []; for (let size = 1; size <= 4; size++) { const d = new TextDecoder(); let s = ""; for (let i = 0; i < all.length; i += size) s += d.decode(all.subarray(i, i + size), { stream: true }); out.push(s + d.decode()); } return out.map((s) => s === "a€😀ß\u{10ffff}"); });
check("TextDecoder stream pieces", () => { const d = new TextDecoder(); return [[0xf0], [0x9f, 0x98], [0x80, 0x41], [0xe2, 0x41], [0xf0, 0x80], [0xc2]].map((b) => d.decode(bytes(...b), { stream: true })).concat(d.decode()); });
check("TextDecoder stream utf-16le", () => { const d = new TextDecoder("utf-16le"); return [[0xff], [0xfe, 0x3d], [0xd8], [0x00], [0xde, 0x41, 0x00], [0x3d, 0xd8]].map((b) => d.decode(bytes(...b), { stream: true })).concat(d.decode()); });
check("TextDecoder stream utf-16be", () => { const d = new TextDecoder("utf-16be"); return [[0x00, 0x41, 0xd8], [0x3d, 0xde], [0x00], [0xdc, 0x00]].map((b) => d.decode(bytes(...b), { stream: true })).concat(d.decode()); });
check("TextDecoder stream shift_jis", () => { const d = new TextDecoder("shift_jis"); return [[0x82], [0xa0, 0x82], [0xa2]].map((b) => d.decode(bytes(...b), { stream: true })).join("") + d.decode(); });
check("TextDecoder stream restarts", () => { const d = new TextDecoder(); d.decode(bytes(0xe2), { stream: true }); return [d.decode(bytes(0x41)), d.decode(bytes(0xef, 0xbb, 0xbf, 0x42))]; });
check("TextDecoder windows-1252", () => new TextDecoder("latin1").decode(bytes(0x80, 0xe9, 0x9f)));
check("TextDecoder inputs", () => { const b = bytes(0x61, 0x62, 0x63, 0x64); return [new TextDecoder().decode(b.buffer), new TextDecoder().decode(new DataView(b.buffer, 1, 2)), new TextDecoder().decode(new Uint16Array(b.buffer, 2)), new TextDecoder().decode(), new TextDecoder().decode(undefined)]; });
check("TextDecoder wrong input", () => fails(() => new TextDecoder().decode(4)));

// ---- URL
const parts = (u) => ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"].map((p) => u[p]);
check("URL parts", () => parts(new URL("https://user:pa%20ss@Example.COM:8080/a/../b c?x=1&y=ü#frag")));
check("URL relative", () => [["../c", "http://a/b/d/e"], ["//h/p", "https://a/b"], ["?q", "http://a/b?c#d"], ["#f", "http://a/b?c#d"], ["", "http://a/b#d"]].map(([u, b]) => new URL(u, b).href));
check("URL schemes", () => ["mailto:a@b", "data:text/plain,hi", "file:///C:/x", "blob:https://a/b", "javascript:1", "ws://a:80/", "urn:isbn:1"].map((u) => [new URL(u).href, new URL(u).origin]));
check("URL hosts", () => ["http://0x7f.1/", "http://[::1]:80/", "http://[2001:db8::0:1]/", "http://bücher.de/", "http://a.b.:443/", "http://1.2.3/"].map((u) => new URL(u).host));
check("URL invalid", () => ["", "x", "http://", "http://a b/", "http://[::1", "http://a:99999/", "//a"].map((u) => fails(() => new URL(u))));
check("URL error fields", () => { try { new URL("x", "y"); } catch (e) { return [e.code, e.input, e.base, Object.keys(e)]; } return "none"; });
check("URL needs an argument", () => fails(() => new URL()));
check("URL.canParse", () => [URL.canParse("x"), URL.canParse("x", "http://a"), URL.canParse("http://a"), URL.canParse("x", "y")]);
check("URL.parse", () => [URL.parse("x"), URL.parse("x", "http://a/").href, URL.parse("http://b") instanceof URL]);
check("URL setters", () => { const u = new URL("http://a/b"); u.protocol = "https"; u.username = "me"; u.password = "p@ss"; u.host = "c:81"; u.pathname = "d e"; u.search = "q=1"; u.hash = "h"; const first = u.href; u.hostname = "z"; u.port = ""; u.search = ""; u.hash = ""; return [first, u.href]; });
check("URL setters ignore nonsense", () => { const u = new URL("http://a:81/b"); u.port = "x"; u.host = ""; u.protocol = "nonsense-"; u.protocol = "mailto"; u.hostname = "a b"; return u.href; });
check("URL href setter", () => { const u = new URL("http://a/"); u.href = "https://b/?c"; return [u.href, fails(() => { u.href = "nope"; }), u.href]; });
check("URL origin is read only", () => kind(() => { "use strict"; new URL("http://a").origin = "x"; }));
check("URL searchParams live", () => { const u = new URL("http://a/?x=1"), p = u.searchParams; p.append("y", "a b"); const one = u.href; u.search = "?z=3"; const two = [...p]; p.delete("z"); return [one, two, u.href, u.searchParams === p]; });
check("URL searchParams after href", () => { const u = new URL("http://a/?x=1"), p = u.searchParams; u.href = "http://b/?k=v"; return [p.toString(), p.get("k")]; });
check("URL strings", () => { const u = new URL("http://a/b"); return [String(u), u.toJSON(), JSON.stringify({ u }), `${u}`]; });
check("URL converts", () => new URL({ toString: () => "http://o/" }).href);
check("URL keys", () => Object.keys(URL.prototype).sort());
check("URL tag", () => [Object.prototype.toString.call(new URL("http://a")), URL.length, URL.name, Object.keys(new URL("http://a"))]);
check("URL receiver", () => kind(() => URL.prototype.href));
check("URL subclass", () => { class U extends URL { get up() { return this.host.toUpperCase(); } } return [new U("http://abc/").up, new U("http://abc/") instanceof URL]; });

// ---- URLSearchParams
check("URLSearchParams strings", () => ["", "?a=1", "a=1&b", "a==1&&=b&=", "a+b=c%20d%2B", "%41%zz%4=%", "é=€&%F0%9F%98%80=%ff", "??a", "a=\ud800"].map((s) => [...new URLSearchParams(s)]));
check("URLSearchParams inits", () => [undefined, null, 4, true, [["a", "b"], ["c", "d"]], { x: 1, y: [2, 3] }, new Map([["m", "n"]]), new URLSearchParams("p=q"), [["a", 1].values()], function f() {}].map((v) => new URLSearchParams(v).toString()));
check("URLSearchParams bad inits", () => [[1], [["a"]], [["a", "b", "c"]], ["ab"], { [Symbol.iterator]: 4 }].map((v) => fails(() => new URLSearchParams(v))));
check("URLSearchParams serializes", () => new URLSearchParams([["a b", "c&d=e"], ["é", "😀"], ["~!'()*-._", "%+\n"], ["\ud800", "\0"]]).toString());
check("URLSearchParams append and get", () => { const p = new URLSearchParams("a=1"); p.append("a", 2); p.append("b", undefined); return [p.get("a"), p.getAll("a"), p.get("b"), p.get("nope"), p.getAll("nope"), p.size]; });
check("URLSearchParams delete", () => { const p = new URLSearchParams("a=1&b=2&a=3&a=1"); p.delete("a", "1"); const one = p.toString(); p.delete("a"); p.delete("b", undefined); return [one, p.toString()]; });
check("URLSearchParams has", () => { const p = new URLSearchParams("a=1&b=2"); return [p.has("a"), p.has("c"), p.has("a", "1"), p.has("a", "2"), p.has("a", undefined), p.has("a", 1)]; });
check("URLSearchParams set", () => { const p = new URLSearchParams("a=1&b=2&a=3"); p.set("a", "x"); p.set("c", "y"); return p.toString(); });
check("URLSearchParams sort", () => { const p = new URLSearchParams("z=1&a=2&😀=3&ﬀ=4&a=1&Z=0"); p.sort(); return [...p].map(([k, v]) => k + v); });
check("URLSearchParams forEach", () => { const log = [], self = {}; const p = new URLSearchParams("a=1&b=2"); p.forEach(function (v, k, o) { log.push(v, k, o === p, this === self); }, self); return log; });
check("URLSearchParams iterators", () => { const p = new URLSearchParams("a=1&b=2"); return [[...p.keys()], [...p.values()], [...p.entries()], p[Symbol.iterator] === p.entries, Object.prototype.toString.call(p.keys())]; });
check("URLSearchParams live iteration", () => { const p = new URLSearchParams("a=1&b=2&c=3"), log = []; for (const [k] of p) { log.push(k); if (k === "a") p.delete("b"); } return log; });
check("URLSearchParams iterator helpers", () => new URLSearchParams("a=1&b=2").keys().map((k) => k + k).toArray());
check("URLSearchParams errors", () => { const p = new URLSearchParams(); return [fails(() => p.append("a")), fails(() => p.get()), fails(() => p.set("a")), fails(() => p.delete()), fails(() => p.forEach(4)), kind(() => p.append("a", Symbol())), kind(() => URLSearchParams.prototype.get.call({}, "a"))]; });
check("URLSearchParams keys", () => Object.keys(URLSearchParams.prototype).sort());
check("URLSearchParams surrogate keys", () => new URLSearchParams({ "\ud835x": "1", xx: "2", "\ud83dx": "3" }).toString());

// ---- structuredClone
check("structuredClone values", () => structuredClone({ a: [1, "x", null, true], d: new Date(0), n: { deep: [{}] } }));
check("structuredClone types", () => { const c = structuredClone([new Map([[1, new Set([2])]]), /x/gi, 5n, new Date(NaN), Object(3), new Error("e"), bytes(1, 2), undefined, -0, NaN]); return [c[0].get(1).has(2), String(c[1]), c[2] === 5n, String(c[3]), typeof c[4], c[5].message, c[5] instanceof Error, hex(c[6]), c[7] === undefined, Object.is(c[8], -0), Number.isNaN(c[9])]; });
check("structuredClone errors keep their kind", () => { const e = structuredClone(new RangeError("r", { cause: 1 })); return [e.name, e.message, e instanceof RangeError, e.cause]; });
check("structuredClone circular", () => { const a = { n: 1 }; a.self = a; const c = structuredClone(a); return [c.self === c, c !== a, c.n]; });
check("structuredClone identity", () => { const o = {}; const [a, b] = structuredClone([o, o]); return [a === b, a !== o]; });
check("structuredClone drops", () => { class P { constructor() { this.x = 1; } m() {} } const c = structuredClone(new P()); return [c.constructor === Object, c.x, "m" in c]; });
check("structuredClone refuses", () => [() => {}, Symbol("s"), new WeakMap(), { f() {} }, [Symbol.iterator], Promise.resolve()].map((v) => fails(() => structuredClone(v))));
check("structuredClone error type", () => { try { structuredClone(() => {}); } catch (e) { return [e instanceof DOMException, e.name, e.code]; } return "none"; });
check("structuredClone passes on getters' errors", () => fails(() => structuredClone({ get a() { throw new RangeError("mine"); } })));
check("structuredClone transfer", () => { const a = new ArrayBuffer(4); new Uint8Array(a)[0] = 9; const c = structuredClone({ a }, { transfer: [a] }); return [a.byteLength, a.detached, c.a.byteLength, new Uint8Array(c.a)[0]]; });
check("structuredClone transfer errors", () => [fails(() => structuredClone(1, 3)), fails(() => structuredClone(1, { transfer: 3 })), fails(() => structuredClone(1, { transfer: [3] })), kind(() => structuredClone(1, { transfer: [{}] })), structuredClone(1, null)]);
check("structuredClone detached", () => { const a = new ArrayBuffer(4); structuredClone(a, { transfer: [a] }); return [kind(() => structuredClone(a)), kind(() => structuredClone(a, { transfer: [a] }))]; });
check("structuredClone needs a value", () => kind(() => structuredClone()));

// ---- base64
check("btoa", () => ["", "a", "ab", "abc", "\0\xff\x80", "é", null, undefined, 12].map((v) => btoa(v)));
check("btoa refuses", () => [fails(() => btoa("€")), fails(() => btoa()), kind(() => btoa(Symbol()))]);
check("atob", () => ["", "YQ==", "YWI=", "YWJj", "YQ", "YWI", " Y W\nJ\tj\f\r", "AP+A", "null", "ab=="].map((v) => Array.from(atob(v), (c) => c.charCodeAt(0))));
check("atob refuses", () => ["a", "abcde", "a===", "ab=", "abc==", "====", "=", "ab=c", "abcd="].map((v) => kind(() => atob(v))));
check("atob refuses characters", () => ["*", "ab*=", "a-_b", "é€", "YQ==\u00a0"].map((v) => kind(() => atob(v))));
check("atob needs an argument", () => fails(() => atob()));
check("base64 round trip", () => { let s = ""; for (let i = 0; i < 70000; i++) s += String.fromCharCode((i * 31) & 255); return [atob(btoa(s)) === s, btoa(s).length, btoa(s).slice(-12)]; });

// ---- crypto
check("crypto.randomUUID", () => [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), crypto.randomUUID() !== crypto.randomUUID()]);
check("crypto.getRandomValues", () => { const a = new Uint32Array(64); return [crypto.getRandomValues(a) === a, a.some((v) => v > 65535), crypto.getRandomValues(new BigInt64Array(2)).length, crypto.getRandomValues(new Uint8Array(65536)).length]; });
check("crypto.getRandomValues part", () => { const all = new Uint8Array(64); crypto.getRandomValues(all.subarray(16, 48)); return [all.subarray(0, 16).every((v) => v === 0), all.subarray(48).every((v) => v === 0), all.some((v) => v)]; });
check("crypto.getRandomValues errors", () => [[], new Float32Array(1), new DataView(new ArrayBuffer(2)), new Uint8Array(65537), 4].map((v) => fails(() => crypto.getRandomValues(v))).concat(fails(() => crypto.getRandomValues())));
check("crypto receivers", () => [kind(() => crypto.randomUUID.call({})), kind(() => crypto.getRandomValues.call({}, bytes(1))), kind(() => new Crypto()), kind(() => new SubtleCrypto())]);
check("crypto tags", () => [Object.prototype.toString.call(crypto), Object.prototype.toString.call(crypto.subtle), crypto.subtle === crypto.subtle]);
for (const name of ["SHA-1", "sha-256", "Sha-384", "SHA-512"]) check(`digest ${name}`, async () => hex(await crypto.subtle.digest(name, new TextEncoder().encode("abc"))));
check("digest by object", async () => hex(await crypto.subtle.digest({ name: "SHA-1" }, new ArrayBuffer(0))));
check("digest of a view", async () => hex(await crypto.subtle.digest("SHA-1", new DataView(bytes(0x78, 0x61, 0x62, 0x63).buffer, 1))));
check("digest takes the bytes at once", async () => { const b = bytes(1, 2, 3), p = crypto.subtle.digest("SHA-256", b); b.fill(0); return hex(await p).slice(0, 23); });
check("digest errors", async () => { const out = []; for (const [a, d] of [["MD5", bytes(1)], ["SHA-1", "text"], [{}, bytes(1)]]) out.push(await crypto.subtle.digest(a, d).then(() => "none", (e) => `${e.name}: ${e.message}`)); return out; });
check("digest is a promise", () => { const p = crypto.subtle.digest("SHA-1", bytes()); return [p instanceof Promise, Object.getPrototypeOf(p) === Promise.prototype]; });

// ---- performance
check("performance.now", () => { const a = performance.now(), b = performance.now(); return [typeof a, b >= a, a >= 0]; });
check("performance.timeOrigin", () => [typeof performance.timeOrigin, Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000, performance.timeOrigin === performance.timeOrigin]);
check("performance.toJSON", () => "timeOrigin" in performance.toJSON());
check("performance receiver", () => kind(() => performance.now.call({})));
check("performance is an EventTarget", () => [performance instanceof EventTarget, Object.prototype.toString.call(performance)]);

// ---- FinalizationRegistry
check("FinalizationRegistry", () => { const r = new FinalizationRegistry(() => {}), t = {}; return [r.register({}, 1), r.register({}, 2, t), r.register(t, 3, t), r.unregister(t), r.unregister(t), r.unregister({})]; });
check("FinalizationRegistry symbols", () => { const r = new FinalizationRegistry(() => {}), s = Symbol("s"); r.register(s, 1, s); return [r.unregister(s), kind(() => r.register(Symbol.for("x"), 1))]; });
check("FinalizationRegistry errors", () => { const r = new FinalizationRegistry(() => {}), o = {}; return [fails(() => new FinalizationRegistry()), fails(() => r.register(1)), fails(() => r.register(o, o)), fails(() => r.register({}, 1, 3)), fails(() => r.unregister(3)), fails(() => r.unregister()), fails(() => FinalizationRegistry.prototype.register.call({}, {})), kind(() => FinalizationRegistry(() => {}))]; });
check("FinalizationRegistry surface", () => [Object.prototype.toString.call(new FinalizationRegistry(() => {})), FinalizationRegistry.length, FinalizationRegistry.name, FinalizationRegistry.prototype.register.length, FinalizationRegistry.prototype.unregister.length, Reflect.ownKeys(FinalizationRegistry.prototype).map(String).sort(), Object.keys(FinalizationRegistry.prototype)]);

// ---- Intl
const intlKinds = ["Collator", "DateTimeFormat", "DisplayNames", "DurationFormat", "ListFormat", "Locale", "NumberFormat", "PluralRules", "RelativeTimeFormat", "Segmenter"];
const sample = (name) => (name === "Locale" ? new Intl.Locale("de-CH") : new Intl[name]("de-CH", { type: name === "DisplayNames" ? "region" : undefined }));
for (const name of intlKinds) {
  check(`Intl.${name} surface`, () => { const C = Intl[name]; const d = Object.getOwnPropertyDescriptor(Intl, name); const hidden = ["0", "length"];
    return [C.name, C.length, Reflect.ownKeys(C), d.writable, d.enumerable, d.configurable, Object.getOwnPropertyDescriptor(C, "prototype").writable, C.prototype.constructor === C,
      Reflect.ownKeys(C.prototype).filter((k) => !hidden.includes(k)).map((k) => { const p = Object.getOwnPropertyDescriptor(C.prototype, k), f = p.get ?? p.value; return [String(k), f.name, f.length, p.enumerable, p.configurable]; })]; });
  check(`Intl.${name} instance`, () => { const C = Intl[name], o = sample(name); return [o instanceof C, Object.prototype.toString.call(o), Reflect.ownKeys(o), Object.getPrototypeOf(o) === C.prototype, o.constructor === C]; });
  check(`Intl.${name} without new`, () => (["Collator", "DateTimeFormat", "NumberFormat"].includes(name) ? Intl[name]() instanceof Intl[name] : fails(() => Intl[name]())));
  check(`Intl.${name} subclass`, () => { class S extends Intl[name] { extra() { return 1; } } const o = new S("en", { type: name === "DisplayNames" ? "region" : undefined }); return [o instanceof S, o instanceof Intl[name], o.extra(), Object.prototype.toString.call(o)]; });
  check(`Intl.${name} foreign receivers`, () => Reflect.ownKeys(Intl[name].prototype).filter((k) => !["0", "length", "constructor", Symbol.toStringTag].includes(k)).map((k) => { const p = Object.getOwnPropertyDescriptor(Intl[name].prototype, k); return fails(() => (p.get ?? p.value).call({})); }));
  check(`Intl.${name} bad locale`, () => [fails(() => new Intl[name]("x_y")), kind(() => new Intl[name](null)), kind(() => new Intl[name](Symbol()))]);
  if (name !== "Locale") check(`Intl.${name}.supportedLocalesOf`, () => [Intl[name].supportedLocalesOf(["de-CH", "tlh", "en"]), Intl[name].supportedLocalesOf(new Intl.Locale("fr")), fails(() => Intl[name].supportedLocalesOf("x_y"))]);
}
check("Intl.NumberFormat formats", () => [["en"], ["de-CH"], ["ar-EG"], ["hi-IN"], ["en", { style: "currency", currency: "EUR" }], ["de", { style: "percent", maximumFractionDigits: 1 }], ["en", { notation: "compact" }], ["en", { style: "unit", unit: "liter", unitDisplay: "long" }], ["en", { minimumFractionDigits: 3, useGrouping: false }], ["en", { signDisplay: "always", roundingMode: "floor", maximumSignificantDigits: 2 }], ["en-u-nu-thai"]].map(([l, o]) => { const f = new Intl.NumberFormat(l, o); return [f.format(-12345.678), f.resolvedOptions()]; }));
check("Intl.NumberFormat inputs", () => { const f = new Intl.NumberFormat("en", { maximumFractionDigits: 20 }); return [0, -0, NaN, Infinity, 12345678901234567890n, "12345678901234567890.123", "x", undefined, null, true, [], [5], new Date(7), { valueOf: () => 4 }, Object(9n)].map((v) => f.format(v)); });
check("Intl.NumberFormat input errors", () => { const f = new Intl.NumberFormat("en"); return [fails(() => f.format(Symbol())), fails(() => f.format({ valueOf() { throw new RangeError("mine"); } })), kind(() => f.formatToParts(Object.create(null)))]; });
check("Intl.NumberFormat parts", () => new Intl.NumberFormat("de", { style: "currency", currency: "USD" }).formatToParts(1234.5));
check("Intl.NumberFormat ranges", () => { const f = new Intl.NumberFormat("en", { style: "currency", currency: "USD" }); return [f.formatRange(3, 5), f.formatRange(3, 3), f.formatRangeToParts(1, 2), fails(() => f.formatRange(1)), fails(() => f.formatRange(NaN, 1)), f.formatRange(5, 3)]; });
check("Intl.NumberFormat bound format", () => { const f = new Intl.NumberFormat("en"), g = f.format; return [g === f.format, g.name, g.length, [1000, 2000].map(g), "prototype" in g]; });
check("Intl.NumberFormat option errors", () => [{ style: "currency" }, { style: "x" }, { maximumFractionDigits: 101 }, { unit: "nope", style: "unit" }, { currency: "E" }, { minimumFractionDigits: 5, maximumFractionDigits: 2 }, null].map((o) => fails(() => new Intl.NumberFormat("en", o))));
check("Intl.NumberFormat reads options once", () => { const log = []; new Intl.NumberFormat("en", new Proxy({}, { get(_, k) { log.push(String(k)); return undefined; } })); return log; });
check("Intl.NumberFormat converts options", () => new Intl.NumberFormat("en", { style: { toString: () => "percent" }, minimumFractionDigits: { valueOf: () => 2 }, useGrouping: { toString: () => "always" } }).format(1234.5));
check("Intl.NumberFormat keeps its options", () => { const o = { minimumFractionDigits: 1 }; const f = new Intl.NumberFormat("en", o); o.minimumFractionDigits = 4; return f.format(1); });
check("Intl.NumberFormat inherited options", () => new Intl.NumberFormat("en", Object.create({ style: "percent" })).format(1));
const when = Date.UTC(2024, 1, 29, 13, 5, 9, 87);
check("Intl.DateTimeFormat formats", () => [["en", { timeZone: "UTC" }], ["de", { dateStyle: "full", timeStyle: "long", timeZone: "Europe/Berlin" }], ["ja-JP-u-ca-japanese", { dateStyle: "long", timeZone: "Asia/Tokyo" }], ["en-GB", { hour: "numeric", minute: "2-digit", timeZone: "UTC", timeZoneName: "short" }], ["en", { weekday: "long", era: "short", year: "numeric", month: "narrow", timeZone: "UTC" }], ["en", { hour: "numeric", hour12: false, fractionalSecondDigits: 2, second: "numeric", timeZone: "+05:30" }], ["en", { dayPeriod: "long", hour: "numeric", hourCycle: "h12", timeZone: "UTC" }]].map(([l, o]) => { const f = new Intl.DateTimeFormat(l, o); return [f.format(when), f.resolvedOptions()]; }));
check("Intl.DateTimeFormat inputs", () => { const f = new Intl.DateTimeFormat("en", { timeZone: "UTC" }); return [f.format(new Date(when)), f.format(0), f.format("86400000"), f.format({ valueOf: () => 0 }), f.format(null), fails(() => f.format(NaN)), fails(() => f.format("x")), fails(() => f.format(new Date(NaN))), kind(() => f.format(5n)), typeof f.format(), fails(() => f.format(9e15))]; });
check("Intl.DateTimeFormat parts", () => new Intl.DateTimeFormat("fr", { dateStyle: "medium", timeZone: "UTC" }).formatToParts(when));
check("Intl.DateTimeFormat ranges", () => { const f = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" }); return [f.formatRange(when, when + 864e5), f.formatRange(when, when), f.formatRangeToParts(when, when + 864e5), fails(() => f.formatRange(1)), fails(() => f.formatRange(NaN, 1))]; });
check("Intl.DateTimeFormat bound format", () => { const f = new Intl.DateTimeFormat("en", { timeZone: "UTC" }); return [f.format === f.format, [0, 864e5].map(f.format), f.format.length, f.format.name]; });
check("Intl.DateTimeFormat errors", () => [{ timeZone: "Nowhere/No" }, { dateStyle: "x" }, { dateStyle: "full", year: "numeric" }, { hour: "x" }, { calendar: "!" }].map((o) => fails(() => new Intl.DateTimeFormat("en", o))));
check("Intl.Collator", () => { const words = ["z", "ä", "a", "Z", "A", "ö"]; return [["de"], ["sv"], ["de", { sensitivity: "base" }], ["en", { caseFirst: "upper" }], ["de-u-co-phonebk"]].map(([l, o]) => { const c = new Intl.Collator(l, o); return [[...words].sort(c.compare), c.resolvedOptions()]; }); });
check("Intl.Collator compare", () => { const c = new Intl.Collator("en", { numeric: true }); return [c.compare("a2", "a10"), c.compare("b", "a"), c.compare("a", "a"), c.compare(undefined, "undefined"), c.compare(1, { toString: () => "1" }), c.compare === c.compare, c.compare.length, c.compare.name, kind(() => c.compare(Symbol(), ""))]; });
check("Intl.Collator boolean options", () => [new Intl.Collator("en", { numeric: {} }).resolvedOptions().numeric, new Intl.Collator("en", { numeric: 0 }).resolvedOptions().numeric, new Intl.Collator("en", { ignorePunctuation: [] }).resolvedOptions().ignorePunctuation]);
check("Intl.PluralRules", () => { const c = new Intl.PluralRules("en"), o = new Intl.PluralRules("en", { type: "ordinal" }), a = new Intl.PluralRules("ar"); return [[0, 1, 2, 1.5].map((n) => c.select(n)), [1, 2, 3, 4, 21].map((n) => o.select(n)), [0, 1, 2, 3, 11, 100].map((n) => a.select(n)), c.selectRange(1, 2), fails(() => c.selectRange(1)), fails(() => c.selectRange(1, NaN)), c.select({ valueOf: () => 1 }), a.resolvedOptions()]; });
check("Intl.RelativeTimeFormat", () => { const f = new Intl.RelativeTimeFormat("en", { numeric: "auto" }); return [f.format(-1, "day"), f.format(3, "weeks"), f.format("-2", { toString: () => "hour" }), f.formatToParts(5, "month"), fails(() => f.format(1, "eon")), fails(() => f.format(Infinity, "day")), new Intl.RelativeTimeFormat("es").format(-1, "day"), f.resolvedOptions()]; });
check("Intl.ListFormat", () => { const f = new Intl.ListFormat("en"); return [f.format(["a", "b", "c"]), f.format(new Set(["x", "y"])), f.format("abc"), f.format([]), f.format(), f.formatToParts(["a", "b"]), new Intl.ListFormat("de", { type: "disjunction" }).format(["a", "b"]), fails(() => f.format([1])), fails(() => f.format(["a", {}])), kind(() => f.format(5)), kind(() => f.format(null)), f.resolvedOptions()]; });
check("Intl.ListFormat closes iterators", () => { const log = []; const it = { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }), return: () => { log.push("closed"); return {}; } }) }; log.push(kind(() => new Intl.ListFormat("en").format(it))); return log; });
check("Intl.DisplayNames", () => [["region", "US"], ["language", "de-AT"], ["script", "Latn"], ["currency", "EUR"], ["calendar", "gregory"], ["dateTimeField", "month"]].map(([type, code]) => new Intl.DisplayNames("en", { type }).of(code)));
check("Intl.DisplayNames errors", () => [fails(() => new Intl.DisplayNames("en")), fails(() => new Intl.DisplayNames("en", {})), fails(() => new Intl.DisplayNames("en", { type: "region" }).of("!")), new Intl.DisplayNames("en", { type: "region", fallback: "none" }).of("ZX"), new Intl.DisplayNames("de", { type: "region" }).of({ toString: () => "FR" }), new Intl.DisplayNames("de", { type: "region" }).resolvedOptions()]);
check("Intl.DurationFormat", () => { const f = new Intl.DurationFormat("en", { style: "long" }); return [f.format({ hours: 1, minutes: 40, seconds: 5 }), f.format({ days: { valueOf: () => 2 } }), f.formatToParts({ years: 1 }), new Intl.DurationFormat("de", { style: "digital" }).format({ hours: 1, seconds: 2 }), kind(() => f.format({})), kind(() => f.format({ hours: 1.5 })), kind(() => f.format(5)), kind(() => f.format({ hours: 1, days: -1 })), new Intl.DurationFormat("en", { fractionalDigits: 3 }).resolvedOptions()]; });
check("Intl.Segmenter", () => { const word = new Intl.Segmenter("en", { granularity: "word" }); return [[...new Intl.Segmenter("en").segment("e\u0301👨‍👩‍👧🇩🇪x")].map((s) => s.segment), [...word.segment("Hello, big world.")], [...new Intl.Segmenter("en", { granularity: "sentence" }).segment("One. Two! Three?")].map((s) => s.index), word.resolvedOptions()]; });
check("Intl.Segmenter containing", () => { const s = new Intl.Segmenter("en", { granularity: "word" }).segment("ab cd"); return [s.containing(4), s.containing(), s.containing(-1), s.containing(5), s.containing({ valueOf: () => 2 }), s.containing(1.9)]; });
check("Intl.Segmenter iterators", () => { const s = new Intl.Segmenter("en").segment("abc"), i = s[Symbol.iterator](); const first = i.next(); return [first, [...i].length, i.next(), i[Symbol.iterator]() === i, Object.prototype.toString.call(i), Object.prototype.toString.call(s), [...s].length, [...s].length]; });
check("Intl.Segmenter iterator surface", () => { const s = new Intl.Segmenter("en").segment("abc"), p = Object.getPrototypeOf(s), q = Object.getPrototypeOf(s[Symbol.iterator]()); return [Reflect.ownKeys(p).map(String), p.containing.length, p[Symbol.iterator].name, Reflect.ownKeys(q).map(String), Object.getPrototypeOf(q) === Iterator.prototype, fails(() => q.next.call({})), fails(() => p.containing.call({})), fails(() => p[Symbol.iterator].call({}))]; });
check("Intl.Segmenter converts", () => [[...new Intl.Segmenter("en").segment(12)].length, [...new Intl.Segmenter("en").segment({ toString: () => "xyz" })].length, kind(() => new Intl.Segmenter("en").segment(Symbol())), [...new Intl.Segmenter("en").segment()].length]);
check("Intl.Locale", () => { const l = new Intl.Locale("zh-Hant-TW-u-ca-roc-nu-hanidec", { hourCycle: "h12", numeric: true }); return [String(l), l.baseName, l.language, l.script, l.region, l.calendar, l.numberingSystem, l.hourCycle, l.numeric, l.caseFirst, l.collation]; });
check("Intl.Locale changes", () => { const l = new Intl.Locale("de"); return [String(l.maximize()), l.maximize() instanceof Intl.Locale, String(new Intl.Locale("en-Latn-US").minimize()), String(new Intl.Locale(l, { region: "AT" })), String(new Intl.Locale({ toString: () => "FR-ca" }))]; });
check("Intl.Locale information", () => { const l = new Intl.Locale("de-CH"); return [l.getCalendars(), l.getCollations(), l.getHourCycles(), l.getNumberingSystems(), l.getTimeZones(), l.getTextInfo(), l.getWeekInfo(), new Intl.Locale("ar").getTimeZones()]; });
check("Intl.Locale errors", () => [fails(() => new Intl.Locale()), fails(() => new Intl.Locale(5)), fails(() => new Intl.Locale("x_")), fails(() => new Intl.Locale("de", { region: "!" })), kind(() => new Intl.Locale("de", null))]);
check("Intl.Locale as locales", () => { const l = new Intl.Locale("de"); return [new Intl.NumberFormat(l).format(1.5), new Intl.NumberFormat([l, "en"]).format(1.5), (1.5).toLocaleString(l), (1.5).toLocaleString([l]), 1234n.toLocaleString(l), "ä".localeCompare("z", l), "ä".localeCompare("z", new Intl.Locale("sv")), new Date(0).toLocaleDateString(l, { timeZone: "UTC" }), Intl.getCanonicalLocales(l), Intl.getCanonicalLocales([l, "EN-us"]), "i".toLocaleUpperCase(new Intl.Locale("tr")), [1.5].toLocaleString(l), new Intl.Locale(l).toString()]; });
check("Intl elsewhere", () => [(1234.5).toLocaleString("de"), new Date(0).toLocaleString("en", { timeZone: "UTC" }), "a".localeCompare("b"), Intl.supportedValuesOf("collation").length > 5, Object.prototype.toString.call(Intl)]);
check("Intl defaults agree", () => { const o = new Intl.DateTimeFormat().resolvedOptions(); return [o.locale === new Intl.NumberFormat().resolvedOptions().locale, o.timeZone === Intl.DateTimeFormat().resolvedOptions().timeZone, new Intl.NumberFormat([]).format(1.5) === new Intl.NumberFormat().format(1.5)]; });

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
