"x".repeat(16 << 20).replace(/x/g, (letter, at) => `${letter}${at}`).length;
