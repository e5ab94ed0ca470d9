new Set({ *[Symbol.iterator]() { for (;;) yield 1; } });
