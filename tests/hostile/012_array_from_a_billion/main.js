Array.from({ length: 1e9 });
