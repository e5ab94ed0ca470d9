let error = new Error("first");
for (let i = 0; i < 100_000; i++) error = new Error(`${i}`, { cause: error });
throw error;
