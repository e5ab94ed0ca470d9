globalThis.kept ??= [];
for (;;) {
  try {
    const text = "x".repeat(1 << 20);
    text.charCodeAt(1); // makes V8 write it out
    kept.push(text);
  } catch {}
}
