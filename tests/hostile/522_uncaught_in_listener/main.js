const target = new EventTarget();
target.addEventListener("x", () => { throw new Error("from the listener"); });
setTimeout(() => { throw new Error("from the timer"); }, 1);
target.dispatchEvent(new Event("x"));
queueMicrotask(() => { throw new Error("from the microtask"); });
"a value";
