console.log(new Uint8Array(1_000_000));
console.log(new Set(Array.from({ length: 100_000 }, (_, i) => i)));
const holes = [];
holes.length = 2 ** 32 - 1;
console.log(holes);
"shown";
