globalThis.console = new Proxy({}, { get() { return () => {}; }, set() { throw new Error("set"); }, defineProperty() { throw new Error("define"); } });
"poisoned";
