globalThis.generator = (function* () { for (let i = 1; ; i++) yield i; })();
generator.next();
globalThis.gate = Promise.withResolvers();
globalThis.opened = (async () => { const { local } = { local: 40 }; return local + (await gate.promise); })();
globalThis.asyncGenerator = (async function* () { yield 1; yield 2; })();
await asyncGenerator.next();
"kept";
