var box = {};
try {
  globalThis.console = { set createTask(value) { box.stolen = value; } };
} catch {}
Object.freeze(globalThis);
"poisoned";
