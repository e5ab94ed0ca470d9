globalThis.kept = Array.from({ length: 128 }, () => new Array(16_000).fill(0.5)); // 16 MB
"kept";
