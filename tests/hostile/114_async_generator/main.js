async function* numbers() { for (let i = 0; ; i++) yield i; }
for await (const number of numbers());
