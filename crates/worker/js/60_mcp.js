// mcp.headers: the X-MCP-* headers of this run. Nothing of them, including names, is on the heap after the run.
const { create: ObjectCreate, freeze: ObjectFreeze, hasOwn: ObjectHasOwn } = Object;
const { get: ReflectGet, has: ReflectHas, ownKeys: ReflectOwnKeys } = Reflect;
const { Proxy } = globalThis;

const none = ObjectFreeze({ __proto__: null });
const refuse = () => false;

// Header objects are read through a proxy, whose target determines how they are shown. Own properties could not be removed again from an
// object that code has stored and frozen.
const prototype = ObjectCreate(Object.prototype);
base.define(prototype, base.inspectSymbol, function () { return { ...this }; });
const traps = {
  __proto__: null,
  get: (target, name) => (ObjectHasOwn(target.values, name) ? target.values[name] : ReflectGet(prototype, name)),
  has: (target, name) => ObjectHasOwn(target.values, name) || ReflectHas(prototype, name),
  ownKeys: (target) => {
    // A function is compiled when it first runs, and then it is on the heap. So these run even if there are no headers.
    traps.getOwnPropertyDescriptor(target, "");
    traps.get(target, "");
    return ReflectOwnKeys(target.values);
  },
  getOwnPropertyDescriptor: (target, name) => {
    const descriptor = { __proto__: null, value: target.values[name], writable: false, enumerable: true, configurable: true };
    return ObjectHasOwn(target.values, name) ? descriptor : undefined;
  },
  set: refuse,
  defineProperty: refuse,
  deleteProperty: refuse,
  preventExtensions: refuse,
  setPrototypeOf: refuse,
};

let current, headers;

// No branch and no loop, because V8 stores on the heap which branches its code has taken.
function take(values) {
  current = { __proto__: prototype, values };
  headers = new Proxy(current, traps);
}

const forget = () => {
  current.values = none;
  take(none);
};

take(none);
base.onBegin((run) => take(run.headerValues));
base.onEnd(forget);

// Their values are never stored, so a run that reads them can't be repeated.
const HEADERS = 2;
base.expose("mcp", ObjectFreeze({
  get headers() {
    host.leaveGap(HEADERS);
    return headers;
  },
}));
