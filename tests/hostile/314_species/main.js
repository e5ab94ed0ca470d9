for (const type of [Array, Promise, Map, Set, RegExp, ArrayBuffer]) {
  Object.defineProperty(type, Symbol.species, { get() { throw new Error("species"); }, configurable: true });
}
Array.prototype.constructor = Promise.prototype.constructor = class { constructor() { throw new Error("constructor"); } };
"poisoned";
