globalThis.kept ??= [];
try {
  for (;;) kept.push(new Uint8Array(1 << 20).fill(1));
} catch {}
for (let i = 0; i < 5; i++) {
  try {
    kept.push(new Uint8Array(1 << 20).fill(1));
  } catch {}
}
kept.length <= 64 ? "full" : kept.length;
