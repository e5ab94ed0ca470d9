let deep = [];
for (let i = 0; i < 50_000; i++) deep = [deep];
JSON.stringify(deep).length;
