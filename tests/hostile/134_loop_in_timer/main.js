setTimeout(() => { for (;;); }, 1);
"a value";
