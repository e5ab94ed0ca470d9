// URLSearchParams, and the form encoding that it reads and writes.
const { uncurryThis, list, isObject, fault, byteLength } = base;
const { TypeError, encodeURIComponent } = globalThis;
const { apply: ReflectApply, ownKeys: ReflectOwnKeys } = Reflect;
const { getOwnPropertyDescriptor: ObjectGetOwnPropertyDescriptor, setPrototypeOf: ObjectSetPrototypeOf } = Object;
const { iterator: SymbolIterator } = Symbol;
const ArrayPrototypeSort = uncurryThis(Array.prototype.sort);
const StringPrototypeIndexOf = uncurryThis(String.prototype.indexOf);
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const StringPrototypeCharCodeAt = uncurryThis(String.prototype.charCodeAt);
const StringPrototypeToWellFormed = uncurryThis(String.prototype.toWellFormed);
const usv = (value) => StringPrototypeToWellFormed(`${value}`);

const hexDigit = (code) => {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
};

// Undoes application/x-www-form-urlencoded: in place, since what comes out is never longer.
function unescape(text) {
  if (StringPrototypeIndexOf(text, "%") < 0 && StringPrototypeIndexOf(text, "+") < 0) return text;
  const bytes = host.utf8Encode(text);
  const length = byteLength(bytes);
  let written = 0;
  for (let i = 0; i < length; i++) {
    const high = bytes[i] === 37 && i + 2 < length ? hexDigit(bytes[i + 1]) : -1;
    const low = high >= 0 ? hexDigit(bytes[i + 2]) : -1;
    if (low >= 0) i += 2;
    bytes[written++] = low >= 0 ? high << 4 | low : bytes[i] === 43 ? 32 : bytes[i];
  }
  return host.decode("utf-8", base.slice(bytes, 0, written), false, true);
}

// What encodeURIComponent leaves alone and form encoding does not, and the space that it writes as %20.
const stricter = { __proto__: null, 33: "%21", 39: "%27", 40: "%28", 41: "%29", 126: "%7E" };
function escape(text) {
  const loose = encodeURIComponent(text);
  let result = "", done = 0;
  for (let i = 0; i < loose.length; i++) {
    const code = StringPrototypeCharCodeAt(loose, i);
    const isSpace = code === 37 && loose[i + 1] === "2" && loose[i + 2] === "0";
    const better = isSpace ? "+" : stricter[code];
    if (better === undefined) continue;
    result += StringPrototypeSlice(loose, done, i) + better;
    done = i + (isSpace ? 3 : 1);
  }
  return done === 0 ? loose : result + StringPrototypeSlice(loose, done);
}

function parse(query) {
  const pairs = list();
  for (let at = 0; at < query.length;) {
    const found = StringPrototypeIndexOf(query, "&", at);
    const end = found < 0 ? query.length : found;
    if (end > at) {
      const piece = StringPrototypeSlice(query, at, end);
      const equals = StringPrototypeIndexOf(piece, "=");
      const name = unescape(equals < 0 ? piece : StringPrototypeSlice(piece, 0, equals));
      pairs[pairs.length] = pair(name, equals < 0 ? "" : unescape(StringPrototypeSlice(piece, equals + 1)));
    }
    at = end + 1;
  }
  return pairs;
}

function serialize(pairs) {
  let text = "";
  for (let i = 0; i < pairs.length; i++) text += `${i > 0 ? "&" : ""}${escape(pairs[i].name)}=${escape(pairs[i].value)}`;
  return text;
}

const pair = (name, value) => ({ name, value });
const withoutMark = (query) => (query[0] === "?" ? StringPrototypeSlice(query, 1) : query);

function fromSequence(sequence) {
  const pairs = list();
  for (const item of sequence) {
    const entry = list();
    if (isObject(item) && typeof item[SymbolIterator] === "function") {
      for (const part of item) entry[entry.length] = usv(part);
    }
    if (entry.length !== 2) throw fault(TypeError, "ERR_INVALID_TUPLE", "Each query pair must be an iterable [name, value] tuple");
    pairs[pairs.length] = pair(entry[0], entry[1]);
  }
  return pairs;
}

function fromRecord(record) {
  const pairs = list();
  const keys = ReflectOwnKeys(record);
  next: for (let i = 0; i < keys.length; i++) {
    if (!ObjectGetOwnPropertyDescriptor(record, keys[i])?.enumerable) continue;
    const name = usv(keys[i]);
    const value = usv(record[keys[i]]);
    // Two keys may become one when lone surrogates are replaced; a record has each once.
    for (let j = 0; name !== keys[i] && j < pairs.length; j++) {
      if (pairs[j].name !== name) continue;
      pairs[j].value = value;
      continue next;
    }
    pairs[pairs.length] = pair(name, value);
  }
  return pairs;
}

function fromInit(init) {
  if (!isObject(init)) return parse(withoutMark(usv(init)));
  const method = init[SymbolIterator];
  if (method === undefined || method === null) return fromRecord(init);
  if (typeof method !== "function") throw fault(TypeError, "ERR_ARG_NOT_ITERABLE", "Query pairs must be iterable");
  return fromSequence(init);
}

let pairsOf;

class URLSearchParams {
  #pairs;
  // Tells the URL that these are the parameters of.
  #changed = () => {};

  constructor(init = "") { this.#pairs = fromInit(init); }

  static {
    pairsOf = (params) => params.#pairs;
    base.linkedParams = (query, changed) => {
      const params = new URLSearchParams(query);
      params.#changed = () => changed(serialize(params.#pairs));
      return params;
    };
    base.resetParams = (params, query) => { params.#pairs = parse(withoutMark(query)); };
  }

  // Keeps the pairs for which `keep` says so, in a list of their own.
  #filter(keep) {
    const kept = list();
    for (let i = 0; i < this.#pairs.length; i++) {
      if (keep(this.#pairs[i])) kept[kept.length] = this.#pairs[i];
    }
    return kept;
  }

  #find(name, value) {
    for (let i = 0; i < this.#pairs.length; i++) {
      if (this.#pairs[i].name === name && (value === undefined || this.#pairs[i].value === value)) return this.#pairs[i];
    }
    return undefined;
  }

  get size() { return this.#pairs.length; }

  append(name, value) {
    this.#pairs;
    base.needArguments(arguments.length, "name", "value");
    const added = pair(usv(name), usv(value));
    this.#pairs[this.#pairs.length] = added;
    this.#changed();
  }

  delete(name, value = undefined) {
    this.#pairs;
    base.needArguments(arguments.length, "name");
    const wanted = pair(usv(name), value === undefined ? undefined : usv(value));
    this.#pairs = this.#filter((each) => each.name !== wanted.name || (wanted.value !== undefined && each.value !== wanted.value));
    this.#changed();
  }

  get(name) {
    this.#pairs;
    base.needArguments(arguments.length, "name");
    return this.#find(usv(name))?.value ?? null;
  }

  getAll(name) {
    this.#pairs;
    base.needArguments(arguments.length, "name");
    const wanted = usv(name);
    const found = this.#filter((each) => each.name === wanted);
    const values = [];
    for (let i = 0; i < found.length; i++) base.show(values, i, found[i].value);
    return values;
  }

  has(name, value = undefined) {
    this.#pairs;
    base.needArguments(arguments.length, "name");
    return this.#find(usv(name), value === undefined ? undefined : usv(value)) !== undefined;
  }

  set(name, value) {
    this.#pairs;
    base.needArguments(arguments.length, "name", "value");
    const wanted = pair(usv(name), usv(value));
    const first = this.#find(wanted.name);
    if (first) {
      first.value = wanted.value;
      this.#pairs = this.#filter((each) => each === first || each.name !== wanted.name);
    } else {
      this.#pairs[this.#pairs.length] = wanted;
    }
    this.#changed();
  }

  sort() {
    ArrayPrototypeSort(this.#pairs, (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    this.#changed();
  }

  forEach(callback, thisArg = undefined) {
    this.#pairs;
    base.needFunction(callback);
    for (let i = 0; i < this.#pairs.length; i++) {
      const { name, value } = this.#pairs[i];
      ReflectApply(callback, thisArg, [value, name, this]);
    }
  }

  entries() {
    this.#pairs;
    return iterate(this, ({ name, value }) => [name, value]);
  }

  keys() {
    this.#pairs;
    return iterate(this, ({ name }) => name);
  }

  values() {
    this.#pairs;
    return iterate(this, ({ value }) => value);
  }

  toString() { return serialize(this.#pairs); }

  [base.inspectSymbol](depth, options, inspect) {
    if (depth < 0) return "[Object]";
    return inspectList(host.constructorName(this), this.#pairs, options, (each) =>
      `${inspect(each.name, options)} => ${inspect(each.value, options)}`, "{}");
  }
}
base.define(URLSearchParams.prototype, SymbolIterator, URLSearchParams.prototype.entries);

function inspectList(name, items, options, show, empty) {
  const shown = list();
  let width = 0;
  for (let i = 0; i < items.length; i++) {
    shown[i] = show(items[i]);
    width += shown[i].length + 2;
  }
  if (items.length === 0) return `${name} ${empty}`;
  const lines = width - 2 > (options.breakLength ?? 80);
  let text = `${name} {${lines ? "\n  " : " "}`;
  for (let i = 0; i < shown.length; i++) text += `${i > 0 ? (lines ? ",\n  " : ", ") : ""}${shown[i]}`;
  return `${text} }`;
}

class ParamsIterator {
  #params;
  #pick;
  #next = 0;

  constructor(params, pick) {
    this.#params = params;
    this.#pick = pick;
  }

  next() {
    const pairs = pairsOf(this.#params);
    const done = this.#next >= pairs.length;
    return { value: done ? undefined : this.#pick(pairs[this.#next++]), done };
  }

  [base.inspectSymbol](depth, options, inspect) {
    if (depth < 0) return "[Object]";
    const pairs = pairsOf(this.#params);
    const rest = list();
    for (let i = this.#next; i < pairs.length; i++) rest[rest.length] = this.#pick(pairs[i]);
    return inspectList("URLSearchParams Iterator", rest, options, (each) => inspect(each, options), "{  }");
  }
}
base.finishClass(ParamsIterator, "URLSearchParams Iterator");
delete ParamsIterator.prototype.constructor;
ObjectSetPrototypeOf(ParamsIterator.prototype, Iterator.prototype);
const iterate = (params, pick) => new ParamsIterator(params, pick);

base.exposeClass(URLSearchParams);
