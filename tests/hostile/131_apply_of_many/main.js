Math.max.apply(null, { length: 2 ** 32 - 1 });
