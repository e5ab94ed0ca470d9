globalThis.kept = new ArrayBuffer(34 << 20, { maxByteLength: 34 << 20 });
new Uint8Array(kept).fill(1)[0];
