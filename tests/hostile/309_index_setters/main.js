for (let i = 0; i < 50; i++) {
  Object.defineProperty(Array.prototype, i, { __proto__: null, get() { return "a lie"; }, set() {}, configurable: true });
  Object.defineProperty(Object.prototype, i, { __proto__: null, get() { return "a lie"; }, set() {}, configurable: true });
}
"poisoned";
