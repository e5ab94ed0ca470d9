const holes = [];
holes.length = 2 ** 32 - 1;
holes;
