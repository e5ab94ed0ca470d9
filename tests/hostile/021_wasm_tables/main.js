const kept = [];
for (;;) kept.push(new WebAssembly.Table({ initial: 1_000_000, element: "externref" }, kept));
