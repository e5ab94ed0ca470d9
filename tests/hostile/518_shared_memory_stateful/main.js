new SharedArrayBuffer(8);
