const { searchParams } = new URL("http://example.com/");
for (let i = 0; ; i++) searchParams.append(`name ${i}`, "é".repeat(500) + i);
