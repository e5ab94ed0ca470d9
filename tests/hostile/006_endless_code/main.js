const kept = [];
for (let i = 0; ; i++) {
  const f = new Function("a", `let b = a + ${i}; for (let c = 0; c < 3; c++) b += c * ${i}; return b;`);
  f(i);
  kept.push(f);
}
