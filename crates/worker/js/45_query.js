// URLSearchParams. The form encoding is native. Parameters are one list in which names and values alternate.
const { uncurryThis, list, isObject, fault } = base;
const { TypeError } = globalThis;
const { apply: ReflectApply, ownKeys: ReflectOwnKeys } = Reflect;
const { getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor, setPrototypeOf: ObjectSetPrototypeOf } = Object;
const { iterator: SymbolIterator } = Symbol;
const ArrayPrototypeSort = uncurryThis(Array.prototype.sort);
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const StringPrototypeToWellFormed = uncurryThis(String.prototype.toWellFormed);
const usv = (value) => StringPrototypeToWellFormed(`${value}`);

const parse = (query) => ObjectSetPrototypeOf(host.parseQuery(query[0] === "?" ? StringPrototypeSlice(query, 1) : query), null);

function add(items, name, value) {
  items[items.length] = name;
  items[items.length] = value;
}

function fromSequence(sequence) {
  const items = list();
  for (const item of sequence) {
    const entry = list();
    if (isObject(item) && typeof item[SymbolIterator] === "function") {
      for (const part of item) entry[entry.length] = usv(part);
    }
    if (entry.length !== 2) throw fault(TypeError, "ERR_INVALID_TUPLE", "Each query pair must be an iterable [name, value] tuple");
    add(items, entry[0], entry[1]);
  }
  return items;
}

function fromRecord(record) {
  const items = list();
  const keys = ReflectOwnKeys(record);
  next: for (let i = 0; i < keys.length; i++) {
    if (!ObjectGetOwnPropertyDescriptor(record, keys[i])?.enumerable) continue;
    const name = usv(keys[i]);
    const value = usv(record[keys[i]]);
    // Two keys may become equal when lone surrogates are replaced; a record has each key once.
    for (let j = 0; name !== keys[i] && j < items.length; j += 2) {
      if (items[j] !== name) continue;
      items[j + 1] = value;
      continue next;
    }
    add(items, name, value);
  }
  return items;
}

function fromInit(init) {
  if (!isObject(init)) return parse(usv(init));
  const method = init[SymbolIterator];
  if (method === undefined || method === null) return fromRecord(init);
  if (typeof method !== "function") throw fault(TypeError, "ERR_ARG_NOT_ITERABLE", "Query pairs must be iterable");
  return fromSequence(init);
}

let itemsOf;

class URLSearchParams {
  #items;
  // The URL whose parameters these are, if any.
  #url;

  constructor(init = "") { this.#items = fromInit(init); }

  static {
    itemsOf = (params) => params.#items;
    base.isParams = (value) => isObject(value) && #items in value;
    base.queryOf = (params) => host.formatQuery(params.#items);
    base.resetParams = (params, query) => { params.#items = parse(query); };
    base.paramsOf = (url, query) => {
      const params = new URLSearchParams(query);
      params.#url = url;
      return params;
    };
  }

  #change(items) {
    this.#items = items;
    if (this.#url) base.paramsChanged(this.#url);
  }

  // The items with this name, and this value if one is given; or all other items.
  #filter(name, value, wanted) {
    const items = list();
    for (let i = 0; i < this.#items.length; i += 2) {
      const isSame = this.#items[i] === name && (value === undefined || this.#items[i + 1] === value);
      if (isSame === wanted) add(items, this.#items[i], this.#items[i + 1]);
    }
    return items;
  }

  get size() { return this.#items.length / 2; }

  append(name, value) {
    this.#items;
    base.needArguments(arguments.length, "name", "value");
    const wanted = usv(name);
    const text = usv(value);
    add(this.#items, wanted, text);
    this.#change(this.#items);
  }

  delete(name, value = undefined) {
    this.#items;
    base.needArguments(arguments.length, "name");
    const wanted = usv(name);
    const text = value === undefined ? undefined : usv(value);
    this.#change(this.#filter(wanted, text, false));
  }

  get(name) {
    this.#items;
    base.needArguments(arguments.length, "name");
    const wanted = usv(name);
    for (let i = 0; i < this.#items.length; i += 2) {
      if (this.#items[i] === wanted) return this.#items[i + 1];
    }
    return null;
  }

  getAll(name) {
    this.#items;
    base.needArguments(arguments.length, "name");
    const found = this.#filter(usv(name), undefined, true);
    const values = [];
    for (let i = 0; i < found.length; i += 2) base.show(values, i / 2, found[i + 1]);
    return values;
  }

  has(name, value = undefined) {
    this.#items;
    base.needArguments(arguments.length, "name");
    const wanted = usv(name);
    const text = value === undefined ? undefined : usv(value);
    return this.#filter(wanted, text, true).length > 0;
  }

  set(name, value) {
    this.#items;
    base.needArguments(arguments.length, "name", "value");
    const wanted = usv(name);
    const text = usv(value);
    const items = list();
    let done = false;
    for (let i = 0; i < this.#items.length; i += 2) {
      const isSame = this.#items[i] === wanted;
      if (!isSame || !done) add(items, this.#items[i], isSame ? text : this.#items[i + 1]);
      done ||= isSame;
    }
    if (!done) add(items, wanted, text);
    this.#change(items);
  }

  sort() {
    const pairs = list();
    for (let i = 0; i < this.#items.length; i += 2) pairs[i / 2] = { name: this.#items[i], value: this.#items[i + 1] };
    ArrayPrototypeSort(pairs, (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    const items = list();
    for (let i = 0; i < pairs.length; i++) add(items, pairs[i].name, pairs[i].value);
    this.#change(items);
  }

  entries() { return new ParamsIterator(this, (name, value) => [name, value]); }

  forEach(callback, thisArg = undefined) {
    this.#items;
    base.needFunction(callback);
    for (let i = 0; i < this.#items.length; i += 2) ReflectApply(callback, thisArg, [this.#items[i + 1], this.#items[i], this]);
  }

  keys() { return new ParamsIterator(this, (name) => name); }
  values() { return new ParamsIterator(this, (name, value) => value); }
  toString() { return host.formatQuery(this.#items); }

  [base.inspectSymbol](depth, options, inspect) {
    if (depth < 0) return "[Object]";
    const shown = list();
    for (let i = 0; i < this.#items.length; i += 2) {
      shown[shown.length] = `${inspect(this.#items[i], options)} => ${inspect(this.#items[i + 1], options)}`;
    }
    return inspectList(host.constructorName(this), shown, options, "{}");
  }
}
base.define(URLSearchParams.prototype, SymbolIterator, URLSearchParams.prototype.entries);

function inspectList(name, shown, options, empty) {
  if (shown.length === 0) return `${name} ${empty}`;
  let width = -2;
  for (let i = 0; i < shown.length; i++) width += shown[i].length + 2;
  const isLong = width > (options.breakLength ?? 80);
  let text = `${name} {${isLong ? "\n  " : " "}`;
  for (let i = 0; i < shown.length; i++) text += `${i > 0 ? (isLong ? ",\n  " : ", ") : ""}${shown[i]}`;
  return `${text} }`;
}

class ParamsIterator {
  #params;
  #pick;
  #next = 0;

  constructor(params, pick) {
    itemsOf(params);
    this.#params = params;
    this.#pick = pick;
  }

  #at(index) {
    const items = itemsOf(this.#params);
    return this.#pick(items[index], items[index + 1]);
  }

  next() {
    const done = this.#next >= itemsOf(this.#params).length;
    const value = done ? undefined : this.#at(this.#next);
    if (!done) this.#next += 2;
    return { done, value };
  }

  [base.inspectSymbol](depth, options, inspect) {
    if (depth < 0) return "[Object]";
    const shown = list();
    for (let i = this.#next; i < itemsOf(this.#params).length; i += 2) shown[shown.length] = inspect(this.#at(i), options);
    return inspectList("URLSearchParams Iterator", shown, options, "{  }");
  }
}
base.finishClass(ParamsIterator, "URLSearchParams Iterator");
delete ParamsIterator.prototype.constructor;
ObjectSetPrototypeOf(ParamsIterator.prototype, Iterator.prototype);

base.exposeClass(URLSearchParams);
