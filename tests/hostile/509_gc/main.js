gc();
