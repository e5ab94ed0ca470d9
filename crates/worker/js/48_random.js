// Math.random: seeded by the operating system in each run, and never part of a heap. (V8's own generator has a fixed seed, for reproducible heaps.)
const { imul } = Math;
const seed = new Uint32Array(4);
let a = 0, b = 0, c = 0, d = 0;

base.onBegin(() => {
  host.random(seed);
  a = seed[0] | 1;
  b = seed[1];
  c = seed[2];
  d = seed[3];
});
base.onEnd(() => {
  seed[0] = seed[1] = seed[2] = seed[3] = a = b = c = d = 0;
});

// xoshiro128**: 32 bits per step.
function next() {
  const x = imul(b, 5);
  const result = imul((x << 7) | (x >>> 25), 9);
  const t = b << 9;
  c ^= a;
  d ^= b;
  b ^= c;
  a ^= d;
  c ^= t;
  d = (d << 11) | (d >>> 21);
  return result;
}

base.define(Math, "random", { random() { return ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000; } }.random);
