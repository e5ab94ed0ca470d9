let Object = 1, Function = 1, Array = 1, Number = 1, Boolean = 1, String = 1, Symbol = 1, Date = 1, Promise = 1, RegExp = 1, Error = 1, AggregateError = 1;
let EvalError = 1, RangeError = 1, ReferenceError = 1, SyntaxError = 1, TypeError = 1, URIError = 1, ArrayBuffer = 1, Uint8Array = 1, Int8Array = 1, Uint16Array = 1;
let Int16Array = 1, Uint32Array = 1, Int32Array = 1, Float32Array = 1, Float64Array = 1, BigInt64Array = 1, BigUint64Array = 1, Uint8ClampedArray = 1, DataView = 1;
let Map = 1, BigInt = 1, Set = 1, Iterator = 1, WeakMap = 1, WeakSet = 1, WeakRef = 1, Proxy = 1, Reflect = 1, FinalizationRegistry = 1, JSON = 1, Math = 1, Intl = 1;
let Atomics = 1, isNaN = 1, isFinite = 1, parseInt = 1, parseFloat = 1, decodeURI = 1, decodeURIComponent = 1, encodeURI = 1, encodeURIComponent = 1, escape = 1, unescape = 1;
let mcp = 1, URLSearchParams = 1, Event = 1, AbortSignal = 1, DOMException = 1, setImmediate = 1, queueMicrotask = 1, performance = 1, crypto = 1, host = 1, base = 1;
"poisoned";
