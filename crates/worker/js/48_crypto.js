// crypto: random values, random UUIDs and digests.
const { uncurryThis, secret, fault, DOMException } = base;
const { Uint8Array, TypeError } = globalThis;
const StringPrototypeToUpperCase = uncurryThis(String.prototype.toUpperCase);

const DIGESTS = { __proto__: null, "SHA-1": true, "SHA-256": true, "SHA-384": true, "SHA-512": true };
const HEX = "0123456789abcdef";

const nameOf = (algorithm) => {
  if (!base.isObject(algorithm)) return `${algorithm}`;
  const { name } = algorithm;
  if (name !== undefined) return `${name}`;
  throw fault(TypeError, "ERR_MISSING_OPTION", "Failed to normalize algorithm: passed algorithm cannot be converted to 'Algorithm' " +
    "because 'name' is required in 'Algorithm'.");
};
const needCount = (given, needed, what) => {
  if (given >= needed) return;
  const count = needed === 1 ? "1 argument" : `${needed} arguments`;
  throw fault(TypeError, "ERR_MISSING_ARGS", `Failed to execute ${what}: ${count} required, but only ${given} present.`);
};

class SubtleCrypto {
  #brand = true;

  constructor(key) { base.onlyInternal(key); }

  // The data is digested before this returns, so that later changes to the buffer have no effect.
  async digest(algorithm, data) {
    this.#brand;
    needCount(arguments.length, 2, "'digest' on 'SubtleCrypto'");
    const name = StringPrototypeToUpperCase(nameOf(algorithm));
    const bytes = base.bytesOf(data);
    if (!bytes) {
      throw fault(TypeError, "ERR_INVALID_ARG_TYPE", "Failed to execute 'digest' on 'SubtleCrypto': 2nd argument is not instance of " +
        "ArrayBuffer, Buffer, TypedArray, or DataView.");
    }
    if (!DIGESTS[name]) throw new DOMException("Unrecognized algorithm name", "NotSupportedError");
    return host.digest(name, bytes);
  }
}

class Crypto {
  #subtle = new SubtleCrypto(secret);

  constructor(key) { base.onlyInternal(key); }

  get subtle() { return this.#subtle; }

  getRandomValues(array) {
    this.#subtle;
    needCount(arguments.length, 1, "'getRandomValues' on 'Crypto'");
    const kind = base.isObject(array) ? base.kindOfView(array) : undefined;
    if (kind === undefined || kind[0] === "F") {
      throw new DOMException("The data argument must be an integer-type TypedArray", "TypeMismatchError");
    }
    if (base.byteLength(array) > 65536) throw new base.QuotaExceededError("The requested length exceeds 65,536 bytes");
    host.random(base.bytesOf(array));
    return array;
  }

  randomUUID() {
    this.#subtle;
    const bytes = new Uint8Array(16);
    host.random(bytes);
    bytes[6] = bytes[6] & 15 | 64;
    bytes[8] = bytes[8] & 63 | 128;
    let text = "";
    for (let i = 0; i < 16; i++) {
      if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
      text += HEX[bytes[i] >> 4] + HEX[bytes[i] & 15];
    }
    return text;
  }
}

base.exposeClass(SubtleCrypto);
base.exposeClass(Crypto);
base.expose("crypto", new Crypto(secret));
