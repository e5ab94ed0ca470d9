console.table(Array.from({ length: 1000 }, (_, i) => ({ [`column ${i}`]: i })));
"drawn";
