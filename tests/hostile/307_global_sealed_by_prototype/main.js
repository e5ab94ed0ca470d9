const names = new Set(["console", "host", "base", "undefined", "then", "toJSON"]);
Object.setPrototypeOf(Object.getPrototypeOf(globalThis), null);
try {
  Object.setPrototypeOf(globalThis, new Proxy(Object.prototype, { has: (target, name) => names.has(name) || Reflect.has(target, name), get: (target, name) => names.has(name) ? "a lie" : Reflect.get(target, name) }));
} catch {}
"poisoned";
