// Hides `console` while the inspector attaches: it hangs functions with raw pointers on what it finds there, and those can't be saved.
const { uncurryThis } = base;
const { defineProperty, deleteProperty, getOwnPropertyDescriptor } = Reflect;
const hasOwn = uncurryThis(Object.prototype.hasOwnProperty);
const HIDDEN = { __proto__: null, value: undefined, writable: true, enumerable: false, configurable: true };
const ADDED = "createTask";

let before;
let exposed;

base.hideConsole = () => {
  before = getOwnPropertyDescriptor(globalThis, "console");
  exposed = undefined;
  if (defineProperty(globalThis, "console", HIDDEN)) return;
  // A frozen global object: the inspector will reach this console, so what it adds is taken away again.
  const console = before?.value;
  if (typeof console === "object" && console !== null && !hasOwn(console, ADDED)) exposed = console;
};

base.showConsole = () => {
  if (exposed) deleteProperty(exposed, ADDED);
  else if (before) defineProperty(globalThis, "console", before);
  else deleteProperty(globalThis, "console");
  before = exposed = undefined;
};
