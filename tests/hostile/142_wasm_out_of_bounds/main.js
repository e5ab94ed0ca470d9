// (memory 1) (func (export "run") (result i32) (i32.load (i32.const -4)))
const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 7, 1, 3, 114, 117, 110, 0, 0,
  10, 9, 1, 7, 0, 65, 124, 40, 2, 0, 11];
new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports.run();
