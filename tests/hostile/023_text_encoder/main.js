new TextEncoder().encode("x".repeat(2 ** 29 - 24)).length;
