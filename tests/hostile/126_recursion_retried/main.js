function again() {
  try {
    again();
  } finally {
    again();
  }
}
again();
