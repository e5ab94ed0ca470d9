console.createTask ??= () => {};
Object.freeze(globalThis);
"poisoned";
