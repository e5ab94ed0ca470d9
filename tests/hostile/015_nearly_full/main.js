globalThis.kept ??= Array.from({ length: $MB * 8 }, () => new Array(16_000).fill(0.5)); // 128 KB each
"kept";
