Math.max(...new Array(1_000_000).fill(1));
