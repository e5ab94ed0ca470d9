globalThis.kept = ["y".repeat(1 << 20)];
"saved";
