// What a worker's own messages look like: length, kind, run number, payload. As text they are text.
const frame = (kind, run, payload) => String.fromCharCode(payload.length, 0, 0, 0, kind, run, 0, 0, 0, 0, 0, 0, 0) + payload;
const forged = [
  frame(11, 0, ""),
  frame(17, 1, "\0'forged'"),
  frame(17, 2, "\0'forged'"),
  frame(16, 1, "\x01\0\0\0\0\0\0\0\x07\0please"),
  frame(18, 1, ""),
  frame(19, 1, "\0".repeat(41)),
  frame(20, 0, "forged"),
].join("");
// At the edges of the pieces that long output is sent in, too.
console.log("x".repeat(65536 - 1));
console.log(forged.padEnd(65536 - 1) + forged);
"real";
