var box = { kept: [] };
const keep = (target, name, value) => { box.kept.push(value); return true; };
try {
  globalThis.console = new Proxy({}, { defineProperty: keep, set: keep, deleteProperty: () => true });
} catch {}
Object.freeze(globalThis);
"poisoned";
