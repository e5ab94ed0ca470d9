globalThis.kept = Array.from({ length: 50_000 }, (_, number) => ({ number }));
"saved";
