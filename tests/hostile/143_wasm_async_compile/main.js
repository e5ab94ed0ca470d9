const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
const modules = await Promise.all([WebAssembly.compile(empty), WebAssembly.compile(empty), WebAssembly.instantiate(empty)]);
WebAssembly.compile(empty);
modules.length;
