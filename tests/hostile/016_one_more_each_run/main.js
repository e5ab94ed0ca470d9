globalThis.kept ??= [];
kept.push(`${kept.length}`.padEnd(1 << 20, "x"));
kept.at(-1).charCodeAt(1);
"more";
