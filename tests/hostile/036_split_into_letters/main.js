"x".repeat(2 ** 29 - 24).split("").length;
