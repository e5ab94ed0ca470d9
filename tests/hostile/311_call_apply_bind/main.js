const lie = () => "a lie";
const { defineProperty } = Object;
for (const name of ["call", "apply", "bind", "toString"]) {
  defineProperty(Function.prototype, name, { value: lie, configurable: true });
}
Reflect.apply = Reflect.get = Reflect.ownKeys = Reflect.construct = lie;
"poisoned";
