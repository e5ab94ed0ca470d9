const kept = [];
for (let i = 0; ; i++) {
  const f = new Function("n", `let sum = ${i}; for (let j = 0; j < n; j++) sum = (sum * 31 + j) | 0; return sum;`);
  for (let call = 0; call < 50; call++) f(2000);
  kept.push(f);
}
