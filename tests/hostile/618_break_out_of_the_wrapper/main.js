}); globalThis.escaped = true; (async () => {
