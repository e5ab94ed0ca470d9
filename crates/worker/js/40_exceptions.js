// DOMException, with its legacy names and codes, and QuotaExceededError.
const { isObject } = base;
const { defineProperty: ObjectDefineProperty } = Object;

const codes = { __proto__: null };

class DOMException extends Error {
  #name = "Error";
  #message;

  constructor(message = "", options = "Error") {
    const text = `${message}`;
    // Error gets the message only for the header of the stack: `message` is an accessor of the prototype.
    super(text);
    delete this.message;
    this.#message = text;
    if (!isObject(options)) {
      this.#name = `${options}`;
      return;
    }
    const { name } = options;
    if (name !== undefined) this.#name = `${name}`;
    if ("cause" in options) base.define(this, "cause", options.cause);
  }

  get name() { return this.#name; }
  get message() { return this.#message; }
  get code() { return codes[this.#name] ?? 0; }
}

// In the order of their codes, from 1. Dashes become underscores in the constant's name and are dropped in the exception's.
const words = "Index-Size DOMString-Size Hierarchy-Request Wrong-Document Invalid-Character No-Data-Allowed No-Modification-Allowed " +
  "Not-Found Not-Supported InUse-Attribute Invalid-State Syntax Invalid-Modification Namespace Invalid-Access Validation Type-Mismatch " +
  "Security Network Abort URL-Mismatch Quota-Exceeded Timeout Invalid-Node-Type Data-Clone";
const constantsOnly = ["DOMString-Size", "No-Data-Allowed", "Validation"];
base.exposeClass(DOMException);
words.split(" ").forEach((word, index) => {
  if (!constantsOnly.includes(word)) codes[`${word.replaceAll("-", "")}Error`] = index + 1;
  const constant = { value: index + 1, enumerable: true };
  ObjectDefineProperty(DOMException, `${word.replaceAll("-", "_").toUpperCase()}_ERR`, constant);
  ObjectDefineProperty(DOMException.prototype, `${word.replaceAll("-", "_").toUpperCase()}_ERR`, constant);
});

class QuotaExceededError extends DOMException {
  #quota = null;
  #requested = null;

  constructor(message = "", options = undefined) {
    super(message, "QuotaExceededError");
    if (!isObject(options)) return;
    const { quota = null, requested = null } = options;
    this.#quota = quota && +quota;
    this.#requested = requested && +requested;
  }

  get quota() { return this.#quota; }
  get requested() { return this.#requested; }
}
base.exposeClass(QuotaExceededError);

base.DOMException = DOMException;
base.QuotaExceededError = QuotaExceededError;
