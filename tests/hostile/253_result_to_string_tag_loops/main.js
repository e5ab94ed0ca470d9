class Odd {
  get [Symbol.toStringTag]() { for (;;); }
}
const odd = new Odd();
odd.field = 1;
odd;
