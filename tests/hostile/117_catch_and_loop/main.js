for (;;) {
  try {
    for (;;);
  } catch {
  } finally {
    continue;
  }
}
