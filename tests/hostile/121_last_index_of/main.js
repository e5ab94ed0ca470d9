Array.prototype.fill.call({ length: 2 ** 53 - 1, get 0() { return 1; } }, 1, 2 ** 52);
