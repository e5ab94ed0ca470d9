const names = Array.from({ length: 20_000 }, (_, i) => `v${i + 1}`);
(0, eval)(names.map((name, i) => `var ${name} = ${i + 1};`).join(""));
"declared";
