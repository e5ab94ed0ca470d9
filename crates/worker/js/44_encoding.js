// TextEncoder and TextDecoder. The encodings are native, and the state of a stream is a few bytes stored here.
const { fault, byteLength } = base;
const { Uint8Array, TypeError, RangeError } = globalThis;

class TextEncoder {
  #brand = true;

  get encoding() {
    this.#brand;
    return "utf-8";
  }

  encode(input = "") {
    this.#brand;
    return host.utf8Encode(`${input}`);
  }

  encodeInto(src, dest) {
    this.#brand;
    if (typeof src !== "string") throw base.wrongType('"src" argument', "of type string", src);
    if (!base.isObject(dest) || base.kindOfView(dest) !== "Uint8Array") {
      throw base.wrongType('"dest" argument', "an instance of Uint8Array", dest);
    }
    const counts = host.utf8EncodeInto(src, dest);
    return { read: counts[0], written: counts[1] };
  }

  [base.inspectSymbol](depth, options, inspect) {
    return inspect({ encoding: this.encoding }, options);
  }
}

const none = new Uint8Array(0);

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  #streaming = false;
  #begun = false;
  #state = none;

  constructor(label = "utf-8", options = undefined) {
    const text = `${label}`;
    if (options !== null) base.needObject(options);
    this.#encoding = host.encodingName(text);
    this.#fatal = !!options?.fatal;
    this.#ignoreBOM = !!options?.ignoreBOM;
    if (this.#encoding === undefined || this.#encoding === "replacement") {
      throw fault(RangeError, "ERR_ENCODING_NOT_SUPPORTED", `The "${this.#encoding ?? text}" encoding is not supported`);
    }
  }

  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBOM; }

  decode(input = none, options = undefined) {
    this.#encoding;
    if (options !== null) base.needObject(options);
    const stream = !!options?.stream;
    const given = base.bytesOf(input);
    if (!given) {
      throw fault(TypeError, "ERR_INVALID_ARG_TYPE",
        'The "list" argument must be an instance of SharedArrayBuffer, ArrayBuffer or ArrayBufferView.');
    }
    const goesOn = this.#streaming;
    if (!goesOn) {
      this.#begun = false;
      this.#state = none;
    }
    this.#streaming = stream;
    const text = goesOn || stream ? this.#step(given, stream) : host.decode(this.#encoding, given, this.#fatal, this.#ignoreBOM);
    if (text !== undefined) return text;
    this.#streaming = false;
    throw fault(TypeError, "ERR_ENCODING_INVALID_ENCODED_DATA", `The encoded data was not valid for encoding ${this.#encoding}`);
  }

  #step(given, stream) {
    const step = host.decodeStream(this.#encoding, this.#state, given, this.#fatal, this.#ignoreBOM || this.#begun, !stream);
    if (!step) return undefined;
    // A byte order mark is no longer possible at this position.
    this.#begun ||= byteLength(this.#state) + byteLength(given) > byteLength(step[1]);
    this.#state = step[1];
    return step[0];
  }

  [base.inspectSymbol](depth, options, inspect) {
    const fields = { encoding: this.#encoding, fatal: this.#fatal, ignoreBOM: this.#ignoreBOM };
    return base.inspectFields(host.constructorName(this), fields, depth, options, inspect);
  }
}

base.exposeClass(TextEncoder);
base.exposeClass(TextDecoder);
