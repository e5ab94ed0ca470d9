try {
  throw new Error("never seen");
} finally {
  for (;;);
}
