setTimeout = setInterval = setImmediate = queueMicrotask = clearTimeout = () => { throw new Error("replaced"); };
structuredClone = undefined;
"poisoned";
