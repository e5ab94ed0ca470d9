globalThis.closures = [];
for (let i = 0; i < 30_000; i++) { const before = closures[i - 1]; closures[i] = () => (before ? i : -1); }
"kept";
