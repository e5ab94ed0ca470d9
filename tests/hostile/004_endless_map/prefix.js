globalThis.map = new Map(Array.from({ length: 10_000 }, (_, i) => [i, i]));
"saved";
