// Hides `console` while the inspector attaches: it hangs functions with raw pointers on what it finds there, and those can't be saved.
const { uncurryThis } = base;
// Code may declare a `globalThis` of its own.
const realm = globalThis;
const { defineProperty, deleteProperty, getOwnPropertyDescriptor, has, setPrototypeOf } = Reflect;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);
const HIDDEN = { __proto__: null, value: undefined, writable: true, enumerable: false, configurable: true };
const ADDED = "createTask";

let before;
let exposed;

// False when it can't be hidden, and what the inspector leaves behind could not be found again.
base.hideConsole = () => {
  before = getOwnPropertyDescriptor(realm, "console");
  if (before !== undefined) setPrototypeOf(before, null);
  exposed = undefined;
  if (defineProperty(realm, "console", HIDDEN)) return true;
  if (before === undefined) return !has(realm, "console");
  // A frozen global object: the inspector will reach this console. If it is ours, what it adds is taken away again.
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

// Whether the next run on this heap could attach again.
base.canHideConsole = () => {
  const can = base.hideConsole();
  base.showConsole();
  return can;
};
