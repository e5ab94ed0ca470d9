class Odd {
  static get name() { for (;;); }
  get [Symbol.toStringTag]() { return "Tag"; }
}
const odd = new Odd();
Object.defineProperty(odd, "constructor", { get() { for (;;); } });
odd.field = 1;
[odd].length;
