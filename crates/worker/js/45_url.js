// URL; the parser is native, and hands over all parts at once.
const { uncurryThis, fault } = base;
const { getOwnPropertyDescriptor, defineProperty } = Object;
const { TypeError } = globalThis;
const StringPrototypeToWellFormed = uncurryThis(String.prototype.toWellFormed);
const usv = (value) => StringPrototypeToWellFormed(`${value}`);

// In the parser's order.
const PARTS = ["href", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash", "origin"];
const HREF = 0, SEARCH = 8, HASH = 9, ORIGIN = 10;

function invalid(url, from) {
  const error = base.show(fault(TypeError, "ERR_INVALID_URL", "Invalid URL"), "input", url);
  return from === undefined ? error : base.show(error, "base", from);
}

let partsOf, assign;

class URL {
  #parts;
  #params;

  constructor(url, from = undefined) {
    base.needArguments(arguments.length, "url");
    const input = usv(url);
    const context = from === undefined ? undefined : usv(from);
    this.#parts = host.urlParse(input, context);
    if (!this.#parts) throw invalid(input, context);
  }

  static {
    partsOf = (url) => url.#parts;
    assign = (url, part, value) => {
      const parts = part === "href" ? host.urlParse(value, undefined) : host.urlSet(url.#parts[HREF], part, value);
      if (!parts) throw invalid(value);
      url.#parts = parts;
      if (url.#params && (part === "href" || part === "search")) base.resetParams(url.#params, parts[SEARCH]);
    };
  }

  static canParse(url, from = undefined) {
    base.needArguments(arguments.length, "url");
    return host.urlParse(usv(url), from === undefined ? undefined : usv(from)) !== undefined;
  }

  static parse(url, from = undefined) {
    base.needArguments(arguments.length, "url");
    const input = usv(url);
    const context = from === undefined ? undefined : usv(from);
    return host.urlParse(input, context) ? new URL(input, context) : null;
  }

  get searchParams() {
    this.#params ??= base.linkedParams(this.#parts[SEARCH], (query) => {
      this.#parts = host.urlSet(this.#parts[HREF], "search", query);
    });
    return this.#params;
  }

  toString() { return this.#parts[HREF]; }
  toJSON() { return this.#parts[HREF]; }

  [base.inspectSymbol](depth, options, inspect) {
    if (depth < 0) return this;
    const fields = {};
    const show = (index) => base.show(fields, PARTS[index], this.#parts[index]);
    show(HREF);
    show(ORIGIN);
    for (let i = HREF + 1; i <= SEARCH; i++) show(i);
    base.show(fields, "searchParams", this.searchParams);
    show(HASH);
    return base.inspectFields(host.constructorName(this), fields, depth, options, inspect);
  }
}

PARTS.forEach((part, index) => {
  const accessors = {
    get [part]() { return partsOf(this)[index]; },
    set [part](value) {
      partsOf(this);
      assign(this, part, usv(value));
    },
  };
  const descriptor = getOwnPropertyDescriptor(accessors, part);
  if (index === ORIGIN) descriptor.set = undefined;
  defineProperty(URL.prototype, part, descriptor);
});

base.exposeClass(URL);
