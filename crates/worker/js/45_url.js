// URL. The parser is native, and returns the href with the positions of its parts.
const { uncurryThis, isObject, fault, secret } = base;
const { getOwnPropertyDescriptor, defineProperty } = Object;
const { TypeError } = globalThis;
const StringPrototypeSlice = uncurryThis(String.prototype.slice);
const usv = uncurryThis(String.prototype.toWellFormed);

// In the parser's order: see natives/url.rs.
const HREF = 0, PROTOCOL_END = 1, USERNAME_END = 2, HOST_START = 3, HOST_END = 4, PORT = 5, PATHNAME = 6, SEARCH = 7, HASH = 8;

function invalid(url, from) {
  const error = base.show(fault(TypeError, "ERR_INVALID_URL", "Invalid URL"), "input", url);
  return from === undefined ? error : base.show(error, "base", from);
}

// In Node's order.
const PARTS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "searchParams", "hash"];

// One function for all, because each function would be an object in every heap.
function partOf(record, part) {
  const href = record[HREF];
  // A delimiter that nothing follows is left out.
  const marked = (from, to) => (from < 0 || to - from < 2 ? "" : StringPrototypeSlice(href, from, to));
  // The "@" after the credentials may precede the host.
  const hostStart = record[HOST_START] + (href[record[HOST_START]] === "@" ? 1 : 0);
  const searchEnd = record[HASH] < 0 ? href.length : record[HASH];
  switch (part) {
    case "href": return href;
    case "origin": return host.originOfUrl(href);
    case "protocol": return StringPrototypeSlice(href, 0, record[PROTOCOL_END]);
    case "username": return StringPrototypeSlice(href, record[PROTOCOL_END] + 2, record[USERNAME_END]);
    case "password": return StringPrototypeSlice(href, record[USERNAME_END] + 1, record[HOST_START]);
    case "host": return hostStart === record[HOST_END] ? "" : StringPrototypeSlice(href, hostStart, record[PATHNAME]);
    case "hostname": return StringPrototypeSlice(href, hostStart, record[HOST_END]);
    case "port": return record[PORT] < 0 ? "" : `${record[PORT]}`;
    case "pathname": return StringPrototypeSlice(href, record[PATHNAME], record[SEARCH] < 0 ? searchEnd : record[SEARCH]);
    case "search": return marked(record[SEARCH], searchEnd);
    default: return marked(record[HASH], href.length);
  }
}

let recordOf, read, assign;

class URL {
  #record;
  #params;
  // Whether the parameters have changed since the record was created.
  #stale = false;

  constructor(url, from = undefined) {
    base.needArguments(arguments.length, "url");
    if (url === secret) {
      this.#record = from;
      return;
    }
    const input = `${url}`;
    const context = from === undefined ? undefined : `${from}`;
    this.#record = host.parseUrl(input, context);
    if (!this.#record) throw invalid(usv(input), context && usv(context));
  }

  static {
    base.isUrl = (value) => isObject(value) && #record in value;
    base.paramsChanged = (url) => { url.#stale = true; };
    recordOf = (url) => {
      if (url.#stale) {
        url.#record = host.changeUrl(url.#record[HREF], "search", base.queryOf(url.#params)) ?? url.#record;
        url.#stale = false;
      }
      return url.#record;
    };
    assign = (url, part, value) => {
      const record = host.changeUrl(recordOf(url)[HREF], part, value);
      if (!record) {
        if (part === "href") throw invalid(value);
        return;
      }
      url.#record = record;
      if (url.#params && (part === "href" || part === "search")) base.resetParams(url.#params, partOf(record, "search"));
    };
    // `searchParams` is always the same object, and reading it does not change the record.
    read = (url, part) => {
      if (part !== "searchParams") return partOf(recordOf(url), part);
      return url.#params ??= base.paramsOf(url, partOf(url.#record, "search"));
    };
  }

  static parse(url, from = undefined) {
    base.needArguments(arguments.length, "url");
    const record = host.parseUrl(`${url}`, from === undefined ? undefined : `${from}`);
    return record ? new URL(secret, record) : null;
  }

  static canParse(url, from = undefined) {
    base.needArguments(arguments.length, "url");
    return host.canParseUrl(`${url}`, from === undefined ? undefined : `${from}`);
  }

  toString() { return recordOf(this)[HREF]; }

  [base.inspectSymbol](depth, options, inspect) {
    if (depth < 0) return this;
    const fields = {};
    for (let i = 0; i < PARTS.length; i++) base.show(fields, PARTS[i], read(this, PARTS[i]));
    return base.inspectFields(host.constructorName(this), fields, depth, options, inspect);
  }
}

for (const part of PARTS) {
  const accessors = {
    get [part]() { return read(this, part); },
    set [part](value) {
      recordOf(this);
      assign(this, part, `${value}`);
    },
  };
  const descriptor = getOwnPropertyDescriptor(accessors, part);
  if (part === "origin" || part === "searchParams") descriptor.set = undefined;
  defineProperty(URL.prototype, part, descriptor);
}
base.define(URL.prototype, "toJSON", { toJSON() { return recordOf(this)[HREF]; } }.toJSON);

base.exposeClass(URL);
