let deep = [];
for (let i = 0; i < 200_000; i++) deep = [deep];
JSON.stringify(deep).length;
