globalThis.rope ??= "";
for (let i = 0; i < 100_000; i++) rope += "y";
"rope";
