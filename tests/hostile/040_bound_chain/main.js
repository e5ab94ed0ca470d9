globalThis.bound ??= () => 1;
for (let i = 0; i < 100_000; i++) bound = bound.bind(null);
bound();
