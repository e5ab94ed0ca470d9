const error = new TypeError("the message");
error.stack = { toString() { for (;;); } };
throw error;
