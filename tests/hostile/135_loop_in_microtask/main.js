queueMicrotask(() => { for (;;); });
"a value";
