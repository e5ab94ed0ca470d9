globalThis.stacks = typeof DisposableStack === "undefined" ? [] : [new DisposableStack(), new AsyncDisposableStack()];
for (const stack of stacks) stack.defer(() => {});
"kept";
