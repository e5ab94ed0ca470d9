const names = `headers value get set writable enumerable configurable depth length name message stack cause errors next done keys index
  id due order callback parameters repeat weak kind make source bound position transfer options type signal reason code begin end output now
  columns cells rows title room seen indent showHidden customInspect uncaught colors compact sorted getters maxArrayLength maxStringLength
  breakLength numericSeparator stylize budget circular constructor_ prototype_ last pop push has add finish text size whole count`.split(/\s+/);
for (const name of names) {
  Object.defineProperty(Object.prototype, name, { __proto__: null, get() { return "a lie"; }, set() {}, configurable: true });
}
"poisoned";
