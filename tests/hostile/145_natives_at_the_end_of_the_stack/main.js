const natives = [
  () => new URL("http://a/?b=c"), () => structuredClone({ a: [1, { b: 2 }] }), () => new TextEncoder().encode("é"), () => new TextDecoder("utf-16le").decode(new Uint8Array(4)),
  () => (1234.5).toLocaleString("de"), () => new Date(0).toLocaleString("en"), () => console.log({ a: [1, 2, { b: new Map([[1, 2]]) }] }),
  () => JSON.stringify({ a: [1] }), () => crypto.randomUUID(), () => /(?<a>x)+/.exec("xxx"),
];
let overflowed = 0;
for (const native of natives) {
  const deeper = () => {
    native();
    deeper();
  };
  try {
    deeper();
  } catch {
    overflowed++;
  }
}
overflowed;
