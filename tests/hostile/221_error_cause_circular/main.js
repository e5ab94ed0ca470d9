const error = new Error("outer");
error.cause = new Error("inner", { cause: error });
throw error;
