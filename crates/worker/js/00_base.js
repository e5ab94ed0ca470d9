// What every other file of the base heap starts from: uncurried captures, exposure of globals, and the moments of a run.
const { defineProperty: ObjectDefineProperty, setPrototypeOf: ObjectSetPrototypeOf } = Object;
const { bind, call } = Function.prototype;

// uncurryThis(Map.prototype.get)(map, key): a method that no later change to the prototype can reach.
const uncurryThis = bind.bind(call);
base.uncurryThis = uncurryThis;

// A list that user code can't catch writes to: it inherits from nothing.
base.list = () => ObjectSetPrototypeOf([], null);

base.define = (target, name, value) =>
  ObjectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
base.expose = (name, value) => base.define(globalThis, name, value);

const beginning = base.list();
const ending = base.list();
base.onBegin = (step) => { beginning[beginning.length] = step; };
base.onEnd = (step) => { ending[ending.length] = step; };
base.begin = (run) => { for (let i = 0; i < beginning.length; i++) beginning[i](run); };
base.end = () => { for (let i = 0; i < ending.length; i++) ending[i](); };

// V8 leaves this out of contexts that are to be saved, and stacks are empty without it. (Where it puts it in itself, it must not be there yet.)
const { Error } = globalThis;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);
base.onBegin(() => {
  if (!hasOwn(Error, "stackTraceLimit")) base.define(Error, "stackTraceLimit", 10);
});
