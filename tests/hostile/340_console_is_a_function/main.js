try {
  Object.defineProperty(globalThis, "console", { value: function () {}, writable: true, configurable: false });
} catch {}
"poisoned";
