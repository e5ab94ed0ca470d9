globalThis.refused = await import("fs").catch((error) => error);
globalThis.pending = import("os");
pending.catch(() => {});
"kept";
