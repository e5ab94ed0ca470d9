globalThis.list ??= null;
for (let i = 0; i < $LINKS; i++) list = { next: list };
"linked";
