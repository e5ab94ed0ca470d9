const kept = [];
try {
  for (;;) {
    const buffer = new SharedArrayBuffer(1 << 20, { maxByteLength: 16 << 20 });
    buffer.grow(16 << 20);
    new Uint8Array(buffer).fill(1);
    kept.push(buffer);
  }
} catch {}
"ended";
