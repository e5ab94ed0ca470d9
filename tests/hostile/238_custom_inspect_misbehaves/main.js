const custom = Symbol.for("nodejs.util.inspect.custom");
console.log({ [custom]() { console.log("inside"); return this; } });
console.log({ [custom]() { throw new Error("from inspect"); } });
