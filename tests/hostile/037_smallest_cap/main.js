console.log("fits");
({ sum: Array.from({ length: 1000 }, (_, i) => i).reduce((a, b) => a + b) });
