Error.stackTraceLimit = 1e9;
function deeper(n) { if (n === 0) throw new Error("the bottom"); deeper(n - 1); }
deeper(5000);
