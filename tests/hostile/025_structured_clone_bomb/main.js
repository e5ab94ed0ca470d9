let value = ["x".repeat(1 << 20)];
for (;;) value = [structuredClone(value), structuredClone(value)];
