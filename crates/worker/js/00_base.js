// Helpers that all other files of the base heap use: uncurried captures of built-ins, definition of globals, and hooks of a run.
const { defineProperty: ObjectDefineProperty, setPrototypeOf: ObjectSetPrototypeOf } = Object;
const { bind, call } = Function.prototype;

// uncurryThis(Map.prototype.get)(map, key): a method call that later changes to the prototype do not affect.
const uncurryThis = bind.bind(call);
base.uncurryThis = uncurryThis;

// A list without a prototype, so that user code can't intercept writes to it.
base.list = () => ObjectSetPrototypeOf([], null);

base.define = (target, name, value) =>
  ObjectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
base.expose = (name, value) => base.define(globalThis, name, value);

// Hooks of a run. Install hooks define what V8 leaves out of contexts for snapshots. They run in every run, and not when the base heap is
// made: where V8 itself creates these globals, it fails if they exist already.
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

// Without this, stacks are empty.
const { Error } = globalThis;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);
base.onInstall(() => {
  if (!hasOwn(Error, "stackTraceLimit")) base.define(Error, "stackTraceLimit", 10);
});
