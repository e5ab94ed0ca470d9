new RegExp("[\\p{L}--[a-z]]".repeat(30_000), "iv").test("a");
