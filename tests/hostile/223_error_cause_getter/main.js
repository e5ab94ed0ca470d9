const error = new AggregateError([new Error("one")], "many");
Object.defineProperty(error, "cause", { get() { for (;;); } });
throw error;
