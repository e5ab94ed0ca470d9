const seen = new Set([globalThis]);
const freeze = (value) => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) return;
  seen.add(value);
  Object.freeze(value);
  freeze(Object.getPrototypeOf(value));
  for (const key of Reflect.ownKeys(value)) {
    const { get, set, value: inner } = Object.getOwnPropertyDescriptor(value, key);
    freeze(get);
    freeze(set);
    freeze(inner);
  }
};
for (const name of Object.getOwnPropertyNames(globalThis)) freeze(globalThis[name]);
"poisoned";
