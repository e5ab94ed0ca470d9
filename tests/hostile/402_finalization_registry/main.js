globalThis.registry = new FinalizationRegistry(() => {});
globalThis.alive = {};
registry.register(alive, "alive", alive);
for (let i = 0; i < 1000; i++) registry.register({}, i, {});
"kept";
