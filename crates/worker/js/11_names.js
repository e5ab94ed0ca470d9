// The name of an inspected object: from its constructor, its tag, its function or class. No proxy trap is called.
const { uncurryThis, inspectParts: parts } = base;
const { hasOwn: ObjectHasOwn, getPrototypeOf: ObjectGetPrototypeOf } = Object;
const { getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor, getOwnPropertyNames: ObjectGetOwnPropertyNames } = Object;
const { apply: ReflectApply, ownKeys: ReflectOwnKeys } = Reflect;
const FunctionPrototypeToString = uncurryThis(Function.prototype.toString);
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeHas = uncurryThis(Map.prototype.has);
const StringPrototypeEndsWith = uncurryThis(String.prototype.endsWith);
const StringPrototypeStartsWith = uncurryThis(String.prototype.startsWith);
const StringPrototypeIndexOf = uncurryThis(String.prototype.indexOf);
const SymbolToStringTag = Symbol.toStringTag;
const ErrorPrototype = Error.prototype;
const GlobalThis = globalThis;
const TypedArrayPrototype = ObjectGetPrototypeOf(Uint8Array.prototype);
const TypedArrayPrototypeGetTag = uncurryThis(ObjectGetOwnPropertyDescriptor(TypedArrayPrototype, SymbolToStringTag).get);

// A prototype chain can be circular through a proxy's target, so every walk along one is bounded.
const MAX_CHAIN = 1000;

// Prototypes of the language itself, with the names and tags they had before user code ran.
const builtins = new Map([[TypedArrayPrototype, { __proto__: null, name: "TypedArray", tag: undefined }]]);
for (const name of ObjectGetOwnPropertyNames(globalThis)) {
  const { value } = ObjectGetOwnPropertyDescriptor(globalThis, name);
  const prototype = typeof value === "function" ? value.prototype : undefined;
  if (prototype === undefined || prototype === null) continue;
  const named = ObjectGetOwnPropertyDescriptor(prototype, "constructor")?.value === value;
  const tag = ObjectHasOwn(prototype, SymbolToStringTag) ? prototype[SymbolToStringTag] : undefined;
  builtins.set(prototype, { __proto__: null, name: named ? name : undefined, tag });
}

// The target behind any proxies: null behind a revoked proxy.
function solid(object) {
  while (object !== null && !MapPrototypeHas(builtins, object) && host.classOf(object) === "Proxy") object = host.proxyDetails(object)[0];
  return object;
}
const parent = (object) => solid(ObjectGetPrototypeOf(object));
parts.solid = solid;

function hasOnChain(value, prototype) {
  let up = value;
  for (let i = 0; i < MAX_CHAIN && (up = parent(up)) !== null; i++) if (up === prototype) return true;
  return false;
}

// Like value[key], but undefined if a getter throws.
function read(descriptor, value) {
  if (ObjectHasOwn(descriptor, "value")) return descriptor.value;
  if (descriptor.get === undefined) return undefined;
  try {
    return ReflectApply(descriptor.get, value, []);
  } catch {
    return undefined;
  }
}
parts.lookup = (value, key) => {
  for (let i = 0, up = solid(value); i < MAX_CHAIN && up !== null; i++, up = parent(up)) {
    const descriptor = ObjectGetOwnPropertyDescriptor(up, key);
    if (descriptor !== undefined) return read(descriptor, value);
  }
  return undefined;
};

// The same, but ignores what user code may have defined on the prototypes of the language.
parts.ownLookup = (value, key) => {
  for (let i = 0, up = solid(value); i < MAX_CHAIN && up !== null; i++, up = parent(up)) {
    const descriptor = MapPrototypeHas(builtins, up) ? undefined : ObjectGetOwnPropertyDescriptor(up, key);
    if (descriptor !== undefined) return read(descriptor, value);
  }
  return undefined;
};

// The value of an own data property, if there is one.
parts.ownValue = (value, key) => {
  if (!parts.isObject(value) || host.classOf(value) === "Proxy") return undefined;
  const descriptor = ObjectGetOwnPropertyDescriptor(value, key);
  return descriptor !== undefined && ObjectHasOwn(descriptor, "value") ? descriptor.value : undefined;
};
parts.ownText = (value, key) => {
  const text = parts.ownValue(value, key);
  return typeof text === "string" ? text : "";
};

// Names may be any value. A value that can't be converted to a string is not a name.
parts.asText = (value) => {
  if (typeof value === "string") return value;
  try {
    return `${value}`;
  } catch {
    return "";
  }
};
const nameOf = (callable) => parts.asText(parts.lookup(callable, "name") ?? "");

parts.isError = (value, kind) => kind === "Error" || (kind !== "Proxy" && hasOnChain(value, ErrorPrototype));

parts.isOwnPrototype = (value) => {
  const constructor = parts.ownValue(value, "constructor");
  return typeof constructor === "function" && parts.ownValue(constructor, "prototype") === value;
};

// Null if the object has no prototype.
parts.constructorName = (ctx, value, depth) => {
  let up = value;
  for (let i = 0; i < MAX_CHAIN && up !== null; i++, up = parent(up)) {
    const name = up === value ? ownConstructorName(up, value) : MapPrototypeGet(builtins, up)?.name ?? ownConstructorName(up, value);
    if (name !== undefined && name !== "") return name;
  }
  const first = parent(value);
  if (first === null) return null;
  const native = host.constructorName(value);
  if (depth > ctx.depth) return `${native} <Complex prototype>`;
  const inherited = parts.constructorName(ctx, first, depth + 1);
  if (inherited !== null) return `${native} <${inherited}>`;
  return `${native} <${base.inspect(first, { __proto__: null, customInspect: false, depth: -1 })}>`;
};

function ownConstructorName(holder, value) {
  const constructor = parts.ownValue(holder, "constructor");
  if (typeof constructor !== "function") return undefined;
  const prototype = parts.ownValue(constructor, "prototype");
  return prototype !== undefined && hasOnChain(value, prototype) ? nameOf(constructor) : undefined;
}

// A tag that is also shown as a property is left out.
parts.tagOf = (ctx, value) => {
  for (let i = 0, up = value; i < MAX_CHAIN && up !== null; i++, up = parent(up)) {
    let tag;
    if (up === TypedArrayPrototype) {
      tag = TypedArrayPrototypeGetTag(value);
    } else if (MapPrototypeHas(builtins, up)) {
      tag = MapPrototypeGet(builtins, up).tag;
      if (tag === undefined) continue;
    } else {
      const descriptor = ObjectGetOwnPropertyDescriptor(up, SymbolToStringTag);
      if (descriptor === undefined && up === GlobalThis) return "global";
      if (descriptor === undefined) continue;
      if (up === value && (ctx.showHidden || descriptor.enumerable)) return "";
      tag = read(descriptor, value);
    }
    return typeof tag === "string" ? tag : "";
  }
  return "";
};

// "Foo(2) [Bar] ", with a trailing space.
parts.prefix = (name, tag, fallback, size = "") => {
  if (name === null) return `[${fallback}${size}: null prototype] ${tag !== "" && tag !== fallback ? `[${tag}] ` : ""}`;
  if (tag === "" || tag === name) return `${name}${size} `;
  return StringPrototypeEndsWith(tag, `.${name}`) ? `${tag}${size} ` : `${name}${size} [${tag}] `;
};

parts.functionText = (value, kind, name, tag) => {
  if (kind === "Function" && isClass(FunctionPrototypeToString(value))) return classText(value, name, tag);
  let text = `[${kind}${name === null ? " (null prototype)" : ""}`;
  const own = nameOf(value);
  text += own === "" ? " (anonymous)]" : `: ${own}]`;
  if (name !== kind && name !== null) text += ` ${name}`;
  return tag !== "" && tag !== name ? `${text} [${tag}]` : text;
};

function classText(value, name, tag) {
  let text = `[class ${(ObjectHasOwn(value, "name") && nameOf(value)) || "(anonymous)"}`;
  if (name !== "Function" && name !== null) text += ` [${name}]`;
  if (tag !== "" && tag !== name) text += ` [${tag}]`;
  if (name === null) return `${text} extends [null prototype]]`;
  const above = nameOf(parent(value));
  return above === "" ? `${text}]` : `${text} extends ${above}]`;
}

// A method may also be named `class`. Then a parenthesis follows, after spaces and comments at most.
function isClass(source) {
  if (!StringPrototypeStartsWith(source, "class")) return false;
  let at = 5;
  for (;;) {
    const two = (source[at] ?? "") + (source[at + 1] ?? "");
    if (two === "/*") at = StringPrototypeIndexOf(source, "*/", at) + 2;
    else if (two === "//") at = StringPrototypeIndexOf(source, "\n", at) + 1;
    else if (isSpace(source[at])) at++;
    else return source[at] === "{" || (at > 5 && source[at] !== "(");
  }
}
const isSpace = (char) => char === " " || char === "\n" || char === "\t" || char === "\r" || char === "\u00a0" || char === "\ufeff";

// With `showHidden`: properties, other than methods, that up to three user-defined prototypes add.
parts.inheritedSlots = (value, show) => {
  let up = value;
  for (let i = 0; i < 3; i++) {
    up = parent(up);
    if (up === null || MapPrototypeHas(builtins, up)) return;
    const keys = ReflectOwnKeys(up);
    for (let k = 0; k < keys.length; k++) {
      if (keys[k] === "constructor" || ObjectHasOwn(value, keys[k])) continue;
      const descriptor = ObjectGetOwnPropertyDescriptor(up, keys[k]);
      if (!ObjectHasOwn(descriptor, "value") || typeof descriptor.value !== "function") show(keys[k], descriptor);
    }
  }
};
