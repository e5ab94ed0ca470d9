// Hides `console` while the inspector attaches: the inspector adds functions with raw pointers to it, which can't be saved.
const { uncurryThis } = base;
// Code may declare its own `globalThis`.
const realm = globalThis;
const { defineProperty, deleteProperty, getOwnPropertyDescriptor, has, setPrototypeOf } = Reflect;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);
const HIDDEN = { __proto__: null, value: undefined, writable: true, enumerable: false, configurable: true };
const ADDED = "createTask";

let before;
let exposed;

// False if `console` can't be hidden, so that what the inspector adds could not be removed.
base.hideConsole = () => {
  before = getOwnPropertyDescriptor(realm, "console");
  if (before !== undefined) setPrototypeOf(before, null);
  exposed = undefined;
  if (defineProperty(realm, "console", HIDDEN)) return true;
  if (before === undefined) return !has(realm, "console");
  // The global object is frozen, so the inspector will modify this console. If it is ours, the additions are removed again.
  if (!hasOwn(before, "value") || before.value !== base.console || has(before.value, ADDED)) return false;
  exposed = before.value;
  return true;
};

base.showConsole = () => {
  if (exposed) deleteProperty(exposed, ADDED);
  else if (before) defineProperty(realm, "console", before);
  else deleteProperty(realm, "console");
  before = exposed = undefined;
};

// Whether the inspector can attach again in the next run on this heap.
base.canHideConsole = () => {
  const can = base.hideConsole();
  base.showConsole();
  return can;
};
