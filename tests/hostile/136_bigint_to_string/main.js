((1n << 100_000_000n) - 1n).toString().length;
