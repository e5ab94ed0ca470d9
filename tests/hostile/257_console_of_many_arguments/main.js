const many = new Array(50_000).fill(0);
console.log(...many);
console.log("%d".repeat(50_000), ...many);
"logged";
