[12n, Symbol("s"), function f() {}, -0, new Date(NaN), undefined, NaN, Infinity, , null];
