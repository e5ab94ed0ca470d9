const kept = [];
function* numbers(n) { for (;;) yield n++; }
async function waits(n) { await new Promise(() => {}); return n; }
for (let i = 0; ; i++) {
  const generator = numbers(i);
  generator.next();
  kept.push(generator, waits(i), () => i);
}
