const lie = () => "a lie";
const { defineProperty, getOwnPropertyNames } = Object;
for (const type of [String, Array, Object]) {
  for (const name of getOwnPropertyNames(type.prototype)) {
    if (name === "constructor" || name === "length" || name === "__proto__") continue;
    defineProperty(type.prototype, name, { value: lie, configurable: true, writable: true });
  }
}
"poisoned";
