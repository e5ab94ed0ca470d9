globalThis.large = "x".repeat(100 << 20);
"saved";
