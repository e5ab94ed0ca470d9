const GeneratorPrototype = Object.getPrototypeOf(function* () {}.prototype);
GeneratorPrototype.next = GeneratorPrototype.return = () => ({ done: true, value: "a lie" });
const AsyncGeneratorPrototype = Object.getPrototypeOf(async function* () {}.prototype);
AsyncGeneratorPrototype.next = () => Promise.reject(new Error("a lie"));
Object.getPrototypeOf(async () => {}).constructor = null;
Promise.resolve = Promise.reject = Promise.all = () => "a lie";
"poisoned";
