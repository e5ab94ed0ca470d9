globalThis.map ??= new Map();
for (;;) map.set(map.size, map.size);
