let text = "abcd".repeat(1 << 20);
for (;;) text = btoa(text);
