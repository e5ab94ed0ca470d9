function again() { return again() + 1; }
again();
