/(?:.|\n)*x/.test("y".repeat(50_000_000));
