globalThis.large = "x".repeat(20 << 20);
"saved";
