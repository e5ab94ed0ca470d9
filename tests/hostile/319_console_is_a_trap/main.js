Object.defineProperty(globalThis, "console", { get() { throw new Error("trap"); }, configurable: false });
"poisoned";
