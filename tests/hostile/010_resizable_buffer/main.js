for (const power of [40, 36, 33, 32, 31, 30, 29, 28]) {
  try {
    const buffer = new ArrayBuffer(0, { maxByteLength: 2 ** power });
    for (let size = 1 << 20; size <= 2 ** power; size += 1 << 20) {
      buffer.resize(size);
      new Uint8Array(buffer, size - (1 << 20)).fill(1);
    }
  } catch {}
}
"ended";
