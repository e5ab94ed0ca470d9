globalThis.kept ??= [];
kept.push(new Uint8Array(10 << 20).fill(1));
