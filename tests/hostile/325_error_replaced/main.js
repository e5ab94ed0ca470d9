Error.captureStackTrace = () => {};
Error.prototype.toString = () => "a lie";
Object.defineProperty(Error.prototype, "name", { value: "a lie", configurable: true });
Object.defineProperty(Error.prototype, "message", { get() { return "a lie"; }, configurable: true });
globalThis.Error = globalThis.TypeError = null;
"poisoned";
