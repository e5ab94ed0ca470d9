// structuredClone.
const { list, isObject, fault, DOMException } = base;
const { TypeError } = globalThis;
const { iterator: SymbolIterator } = Symbol;

const dataCloneError = (message) => new DOMException(message, "DataCloneError");
const refuse = (what) => { throw fault(TypeError, "ERR_INVALID_ARG_TYPE", `Failed to execute 'structuredClone': ${what}`); };

// V8 would clone these as plain objects and lose their content.
const isRefused = (value) => base.isUrl(value) || base.isParams(value) || base.isIntl(value) || base.isRegistry(value);

const collect = (transfer) => {
  const items = list();
  if (transfer === undefined) return items;
  if (!isObject(transfer) || typeof transfer[SymbolIterator] !== "function") {
    refuse("transfer in Options cannot be converted to sequence.");
  }
  for (const item of transfer) {
    if (!isObject(item)) refuse(`transfer in Options[${items.length}] is not an object.`);
    items[items.length] = item;
  }
  return items;
};

const functions = {
  structuredClone(value, options = undefined) {
    base.needArguments(arguments.length, "value");
    if (options !== undefined && options !== null && !isObject(options)) refuse("Options cannot be converted to a dictionary");
    return host.structuredClone(value, collect(options?.transfer), dataCloneError, isRefused);
  },
};
base.expose("structuredClone", functions.structuredClone);
