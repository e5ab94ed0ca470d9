// (func (export "run") (call 0))
const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 7, 1, 3, 114, 117, 110, 0, 0, 10, 6, 1, 4, 0, 16, 0, 11];
new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports.run();
