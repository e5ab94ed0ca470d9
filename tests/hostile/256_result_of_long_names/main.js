const long = "n".repeat(2 << 20);
console.log({ [long]: 1, [Symbol(long)]: 2 }, Object.defineProperty(() => {}, "name", { value: long }), Symbol(long));
const error = new Error("message");
error.name = long;
console.log(error);
console.log(new (Object.defineProperty(class {}, "name", { value: long }))());
"named";
