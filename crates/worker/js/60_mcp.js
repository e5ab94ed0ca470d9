// mcp.headers: the X-MCP-* headers of this run alone. Nothing of them, names included, is on the heap when the run has ended.
const { create: ObjectCreate, freeze: ObjectFreeze, hasOwn: ObjectHasOwn } = Object;
const { get: ReflectGet, has: ReflectHas, ownKeys: ReflectOwnKeys } = Reflect;
const { Proxy } = globalThis;

const none = ObjectFreeze({ __proto__: null });
const refuse = () => false;

// Header objects are read through a proxy, whose target tells how to show it. Properties of their own could not be taken away again from an
// object that code has kept and frozen.
const prototype = ObjectCreate(Object.prototype);
base.define(prototype, base.inspectSymbol, function () { return { ...this }; });
const traps = {
  __proto__: null,
  get: (target, name) => (ObjectHasOwn(target.values, name) ? target.values[name] : ReflectGet(prototype, name)),
  has: (target, name) => ObjectHasOwn(target.values, name) || ReflectHas(prototype, name),
  ownKeys: (target) => {
    // What runs for the first time is compiled, and then on the heap: so these run even where there is no header to ask for.
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

// No branch and no loop: V8 keeps on the heap which ways its code has gone.
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
base.expose("mcp", ObjectFreeze({ get headers() { return headers; } }));
