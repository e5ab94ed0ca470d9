1 + 1; /* never closed
