({ a: 1, toJSON() { for (;;); } });
