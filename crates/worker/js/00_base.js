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

// The moments of a run. What is installed is missing from contexts that are to be saved and must not be in the base heap itself: where V8 does
// put it into a context, it breaks on finding it there.
const installing = base.list();
const beginning = base.list();
const ending = base.list();
const each = (steps, run) => { for (let i = 0; i < steps.length; i++) steps[i](run); };
base.onInstall = (step) => { installing[installing.length] = step; };
base.onBegin = (step) => { beginning[beginning.length] = step; };
base.onEnd = (step) => { ending[ending.length] = step; };
base.install = () => each(installing);
base.begin = (run) => each(beginning, run);
base.end = () => each(ending);

// Without it stacks are empty.
const { Error } = globalThis;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);
base.onInstall(() => {
  if (!hasOwn(Error, "stackTraceLimit")) base.define(Error, "stackTraceLimit", 10);
});
