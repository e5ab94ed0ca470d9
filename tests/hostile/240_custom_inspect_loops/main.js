({ [Symbol.for("nodejs.util.inspect.custom")]() { for (;;); } });
