Object.prototype[Symbol.for("nodejs.util.inspect.custom")] = () => "a lie";
Array.prototype[Symbol.isConcatSpreadable] = false;
Array.prototype[Symbol.unscopables] = { canary: true };
"poisoned";
