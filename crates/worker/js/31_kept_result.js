// `_`: the result of the last run whose source asked to keep it. Code that assigns to `_` gets an ordinary variable, which is left alone.
const { defineProperty: ObjectDefineProperty, getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor } = Object;
const global = globalThis;

let kept;
const get = () => kept;
const set = (value) => {
  kept = undefined;
  ObjectDefineProperty(global, "_", { __proto__: null, value, writable: true, enumerable: true, configurable: true });
};

base.keepResult = (value) => {
  const found = ObjectGetOwnPropertyDescriptor(global, "_");
  if (found === undefined) ObjectDefineProperty(global, "_", { __proto__: null, get, set, enumerable: false, configurable: true });
  kept = found === undefined || found.get === get ? value : undefined;
};
