({
  [Symbol.for("nodejs.util.inspect.custom")]() {
    setTimeout(() => { globalThis.leftovers = "timer"; }, 0);
    queueMicrotask(() => { globalThis.leftovers = "microtask"; });
    Promise.resolve().then(() => { globalThis.leftovers = "promise"; });
    return "shown";
  },
});
