Object.freeze(globalThis);
"poisoned";
