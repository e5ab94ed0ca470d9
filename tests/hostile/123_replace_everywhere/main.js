"x".repeat(64 << 20).replace(/x/g, "yy").length;
