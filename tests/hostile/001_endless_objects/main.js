globalThis.kept ??= [];
for (;;) kept.push({ number: kept.length });
