globalThis.asm = (function Module(stdlib, foreign, heap) {
  "use asm";
  function add(a, b) { a = a | 0; b = b | 0; return (a + b) | 0; }
  return { add: add };
})(globalThis, {}, new ArrayBuffer(65536));
asm.add(1, 2);
"kept";
