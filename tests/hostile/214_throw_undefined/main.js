setTimeout(() => { throw undefined; }, 1);
"a value";
