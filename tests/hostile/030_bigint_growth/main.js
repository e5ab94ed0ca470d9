let n = 3n;
for (;;) n *= n;
