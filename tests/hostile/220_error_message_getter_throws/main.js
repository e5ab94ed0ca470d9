const error = new Error("hidden");
Object.defineProperty(error, "message", { get() { throw new Error("no message"); } });
Object.defineProperty(error, "name", { get() { throw new Error("no name"); } });
throw error;
