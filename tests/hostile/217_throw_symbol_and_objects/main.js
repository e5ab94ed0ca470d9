throw { code: Symbol("odd"), nested: { deep: [1, 2n] } };
