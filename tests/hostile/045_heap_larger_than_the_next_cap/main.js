globalThis.kept = Array.from({ length: 240 }, () => new Array(16_000).fill(0.5)); // 30 MB
"kept";
