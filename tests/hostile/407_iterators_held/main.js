const map = new Map([[1, "a"], [2, "b"]]);
globalThis.held = [map.entries(), new Set([1, 2]).values(), [1, 2][Symbol.iterator](), "ab"[Symbol.iterator](), "a1b2".matchAll(/\d/g), [1, 2].values().map((x) => x * 2)];
for (const iterator of held) iterator.next();
"kept";
