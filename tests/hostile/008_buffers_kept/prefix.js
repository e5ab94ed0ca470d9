globalThis.kept = [new Uint8Array(8 << 20).fill(1)];
"saved";
