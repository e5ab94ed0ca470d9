const rejected = Array.from({ length: 10_000 }, (_, i) => Promise.reject(i));
let handled = 0;
for (const promise of rejected.reverse()) promise.catch(() => { handled++; });
await null;
await null;
handled;
