const error = new Error("the message");
Object.defineProperty(error, "stack", { get() { for (;;); } });
throw error;
