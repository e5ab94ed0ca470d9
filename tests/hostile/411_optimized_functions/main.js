globalThis.hot = function hot(n) { let sum = 0; for (let i = 0; i < n; i++) sum += i % 7; return sum; };
for (let i = 0; i < 200; i++) hot(10_000);
globalThis.shape = function shape(o) { return o.x; };
for (let i = 0; i < 20_000; i++) shape(i % 2 ? { x: 1 } : { y: 0, x: 2 });
shape(5);
globalThis.pattern = /(a+)(b+)/y;
for (let i = 0; i < 1000; i++) { pattern.lastIndex = 0; pattern.exec("aaabbb"); }
"kept";
