// mcp.headers: the X-MCP-* headers of this run alone.
const { create: ObjectCreate, freeze: ObjectFreeze, defineProperty: ObjectDefineProperty, keys: ObjectKeys } = Object;

// Header objects hold getters, so they say themselves how to be shown.
const prototype = ObjectCreate(Object.prototype);
base.define(prototype, base.inspectSymbol, function () { return { ...this }; });

let values, headers;

const forget = () => {
  // Code may have kept the object; what it kept goes into the heap without the values.
  const names = ObjectKeys(values);
  for (let i = 0; i < names.length; i++) values[names[i]] = undefined;
  take([]);
};

function take(flat) {
  const store = { __proto__: null };
  const object = ObjectCreate(prototype);
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i];
    if (!(name in store)) ObjectDefineProperty(object, name, { __proto__: null, get: () => store[name], enumerable: true });
    store[name] = flat[i + 1];
  }
  values = store;
  headers = ObjectFreeze(object);
}

take([]);
base.onBegin((run) => take(run.headers));
base.onEnd(forget);
base.expose("mcp", ObjectFreeze({ get headers() { return headers; } }));
