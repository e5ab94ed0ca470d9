let deep = new Map();
for (let i = 0; i < 100_000; i++) deep = new Map([[i, deep]]);
deep;
