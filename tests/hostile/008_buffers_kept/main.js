globalThis.kept ??= [];
for (;;) kept.push(new Uint8Array(8 << 20).fill(1));
