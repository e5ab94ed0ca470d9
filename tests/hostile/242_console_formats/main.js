console.log("%s%d%i%f%j%o%O%c%%".repeat(20_000), 1, 2);
console.log("%s", { toString() { throw new Error("toString"); } }, Symbol("s"), 5n, -0);
console.log("%d %i %f", Symbol("s"), 5n, {});
console.log("%j", { toJSON() { return 1; } });
const circle = {};
circle.self = circle;
console.log("%j", circle);
"formatted";
