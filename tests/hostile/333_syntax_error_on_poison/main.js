Error.prepareStackTrace = () => "a lie";
Object.defineProperty(SyntaxError.prototype, "name", { get() { return "a lie"; }, configurable: true });
Object.defineProperty(SyntaxError.prototype, "message", { get() { return "a lie"; }, configurable: true });
SyntaxError.prototype.toString = () => "a lie";
Object.defineProperty(Object.prototype, "stack", { get() { return "a lie"; }, set() {}, configurable: true });
"poisoned";
