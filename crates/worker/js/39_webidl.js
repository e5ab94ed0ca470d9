// Shared by the web APIs: classes with the properties that WebIDL prescribes, errors worded like Node's, access to bytes without getters.
const { uncurryThis } = base;
const { Uint8Array, TypeError } = globalThis;
const { defineProperty: ObjectDefineProperty, getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor, getPrototypeOf } = Object;
const { ownKeys: ReflectOwnKeys } = Reflect;
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const SymbolPrototypeToString = uncurryThis(Symbol.prototype.toString);
base.symbolText = SymbolPrototypeToString;
const ArrayBufferIsView = ArrayBuffer.isView;
const getter = (prototype, name) => uncurryThis(ObjectGetOwnPropertyDescriptor(prototype, name).get);
const TypedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
const ArrayBufferPrototypeGetByteLength = getter(ArrayBuffer.prototype, "byteLength");
const TypedArrayPrototypeGetToStringTag = getter(TypedArrayPrototype, Symbol.toStringTag);
const TypedArrayPrototypeGetBuffer = getter(TypedArrayPrototype, "buffer");
const TypedArrayPrototypeGetByteOffset = getter(TypedArrayPrototype, "byteOffset");
const TypedArrayPrototypeGetByteLength = getter(TypedArrayPrototype, "byteLength");
const DataViewPrototypeGetBuffer = getter(DataView.prototype, "buffer");
const DataViewPrototypeGetByteOffset = getter(DataView.prototype, "byteOffset");
const DataViewPrototypeGetByteLength = getter(DataView.prototype, "byteLength");

base.isObject = (value) => (typeof value === "object" ? value !== null : typeof value === "function");
base.inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

// Only code with this value may construct classes that have no constructor in WebIDL.
base.secret = Symbol("internal");
base.onlyInternal = (key) => {
  if (key !== base.secret) throw base.fault(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor");
};

base.show = (target, name, value) =>
  ObjectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });

base.fault = (Kind, code, message) => base.show(new Kind(message), "code", code);

const primitiveText = (value) => {
  if (typeof value === "string") return `'${value.length > 28 ? `${StringPrototypeSlice(value, 0, 25)}...` : value}'`;
  if (typeof value === "symbol") return SymbolPrototypeToString(value);
  return typeof value === "bigint" ? `${value}n` : value === 0 && 1 / value < 0 ? "-0" : `${value}`;
};
const functionName = (value) => {
  const name = ObjectGetOwnPropertyDescriptor(value, "name")?.value;
  return typeof name === "string" ? name : "";
};
base.received = (value) => {
  if (value === undefined || value === null) return `Received ${value}`;
  if (typeof value === "object") return `Received an instance of ${host.constructorName(value)}`;
  if (typeof value === "function") return `Received function ${functionName(value)}`;
  return `Received type ${typeof value} (${primitiveText(value)})`;
};
base.wrongType = (what, expected, value) =>
  base.fault(TypeError, "ERR_INVALID_ARG_TYPE", `The ${what} must be ${expected}. ${base.received(value)}`);
base.needFunction = (value) => {
  if (typeof value !== "function") throw base.wrongType('"callback" argument', "of type function", value);
};
base.needObject = (value) => {
  if (value !== undefined && !base.isObject(value)) throw base.wrongType('"options" argument', "of type object", value);
};
base.needArguments = (given, first, second) => {
  if (given >= (second ? 2 : 1)) return;
  const names = second ? `"${first}" and "${second}" arguments` : `"${first}" argument`;
  throw base.fault(TypeError, "ERR_MISSING_ARGS", `The ${names} must be specified`);
};

// As WebIDL prescribes: operations and attributes are enumerable, the prototype has a tag. Runs before user code.
base.finishClass = (Class, tag = Class.name) => {
  for (const target of [Class.prototype, Class]) {
    for (const key of ReflectOwnKeys(target)) {
      const descriptor = ObjectGetOwnPropertyDescriptor(target, key);
      if (typeof key === "symbol" || key === "constructor" || !descriptor.configurable || (target === Class && key in Function)) continue;
      ObjectDefineProperty(target, key, { ...descriptor, enumerable: true });
    }
  }
  ObjectDefineProperty(Class.prototype, Symbol.toStringTag, { value: tag, configurable: true });
  return Class;
};
base.exposeClass = (Class) => base.expose(Class.name, base.finishClass(Class));

// For [nodejs.util.inspect.custom]: shows `fields` as if they were the object's own properties.
base.inspectFields = (name, fields, depth, options, inspect) => {
  const deeper = options.depth === null || options.depth === undefined ? null : options.depth - 1;
  return `${name} ${inspect(fields, { __proto__: null, ...options, depth: deeper })}`;
};

base.byteLength = TypedArrayPrototypeGetByteLength;
base.kindOfView = TypedArrayPrototypeGetToStringTag;

// The bytes of a buffer or view, not copied; undefined for anything else. A detached buffer has none.
base.bytesOf = (value) => {
  let buffer, offset, length;
  if (ArrayBufferIsView(value)) {
    if (TypedArrayPrototypeGetToStringTag(value) !== undefined) {
      length = TypedArrayPrototypeGetByteLength(value);
      buffer = TypedArrayPrototypeGetBuffer(value);
      offset = TypedArrayPrototypeGetByteOffset(value);
    } else {
      try {
        length = DataViewPrototypeGetByteLength(value);
        buffer = DataViewPrototypeGetBuffer(value);
        offset = DataViewPrototypeGetByteOffset(value);
      } catch {
        length = 0;
      }
    }
    return length === 0 ? new Uint8Array(0) : new Uint8Array(buffer, offset, length);
  }
  if (!base.isObject(value)) return undefined;
  const kind = host.classOf(value);
  if (kind === "SharedArrayBuffer") return new Uint8Array(value);
  if (kind !== "ArrayBuffer") return undefined;
  return ArrayBufferPrototypeGetByteLength(value) === 0 ? new Uint8Array(0) : new Uint8Array(value);
};
base.slice = (bytes, from, to) =>
  new Uint8Array(TypedArrayPrototypeGetBuffer(bytes), TypedArrayPrototypeGetByteOffset(bytes) + from, to - from);
