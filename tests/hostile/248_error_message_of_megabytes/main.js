throw new RangeError("m".repeat(8 << 20));
