for (const name of Object.getOwnPropertyNames(globalThis)) {
  if (["globalThis", "console", "canary", "log"].includes(name)) continue;
  try {
    Object.defineProperty(globalThis, name, { value: "a lie", configurable: true });
  } catch {}
}
"poisoned";
