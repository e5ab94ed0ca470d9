const fired = new Promise((resolve) => setTimeout(() => resolve("fired"), 5));
for (const id of [-1, 0, NaN, Infinity, 1e9, "x", null, undefined, {}, [], Symbol("s"), 5n]) {
  try { clearTimeout(id); clearInterval(id); clearImmediate(id); } catch {}
}
await fired;
