({ ["__proto__"]: 1, constructor: 2, toString: 3, "": 4, "a b": 5 });
