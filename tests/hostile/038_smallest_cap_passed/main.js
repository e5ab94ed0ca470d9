const kept = [];
for (;;) kept.push({ number: kept.length });
