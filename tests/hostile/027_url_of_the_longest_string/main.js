new URL("http://example.com/" + "é".repeat(2 ** 28)).href.length;
