queueMicrotask(() => { throw new Error("from the microtask"); });
"a value";
