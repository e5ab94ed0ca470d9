const lie = () => "a lie";
for (const type of [Map, Set, WeakMap, WeakSet, Date, RegExp, Symbol, BigInt, Number, Boolean]) {
  for (const name of Object.getOwnPropertyNames(type.prototype)) {
    try {
      Object.defineProperty(type.prototype, name, { value: lie, configurable: true });
    } catch {}
  }
}
"poisoned";
