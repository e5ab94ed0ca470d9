Object.defineProperty(Object.prototype, "headers", { set(value) { globalThis.stolen = value; }, get() { return ["x-mcp-secret", "a lie"]; }, configurable: true });
"poisoned";
