Error.stackTraceLimit = 0;
Object.defineProperty(Error, "stackTraceLimit", { get() { for (;;); }, configurable: false });
"poisoned";
