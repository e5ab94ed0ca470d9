// TextEncoder and TextDecoder; the encodings themselves are native, streaming is done here.
const { fault, byteLength, setBytes, slice } = base;
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

// How many bytes at the end are the beginning of a character that may yet be completed.
const openEnds = {
  __proto__: null,
  "utf-8": (bytes, length) => {
    for (let back = 1; back <= 3 && back <= length; back++) {
      const lead = bytes[length - back];
      if (lead < 0x80) return 0;
      if (lead < 0xc0) continue;
      const needed = lead >= 0xf5 || lead < 0xc2 ? 0 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
      return back < needed && (back === 1 || canFollow(lead, bytes[length - back + 1])) ? back : 0;
    }
    return 0;
  },
  "utf-16le": (bytes, length) => openUnits(bytes, length, 1),
  "utf-16be": (bytes, length) => openUnits(bytes, length, 0),
};

// Overlong forms, surrogates and what is past U+10FFFF are wrong from their second byte on.
function canFollow(lead, second) {
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  return lead !== 0xf4 || second < 0x90;
}

function openUnits(bytes, length, high) {
  const odd = length % 2;
  const even = length - odd;
  return even >= 2 && (bytes[even - 2 + high] & 0xfc) === 0xd8 ? odd + 2 : odd;
}

// These have states or pairs that only the whole input settles: they wait for the end of the stream.
const whole = { __proto__: null, gbk: 1, gb18030: 1, big5: 1, "euc-jp": 1, "iso-2022-jp": 1, shift_jis: 1, "euc-kr": 1 };

function join(first, second) {
  if (byteLength(first) === 0) return second;
  const both = new Uint8Array(byteLength(first) + byteLength(second));
  setBytes(both, first);
  setBytes(both, second, byteLength(first));
  return both;
}

const none = new Uint8Array(0);

class TextDecoder {
  #encoding;
  #fatal;
  #ignoreBOM;
  #streaming = false;
  #begun = false;
  #pending = none;

  constructor(label = "utf-8", options = undefined) {
    const text = `${label}`;
    if (options !== null) base.needObject(options);
    this.#encoding = host.encodingName(text);
    this.#fatal = !!options?.fatal;
    this.#ignoreBOM = !!options?.ignoreBOM;
    if (this.#encoding === undefined || this.#encoding === "replacement") {
      throw fault(RangeError, "ERR_ENCODING_NOT_SUPPORTED", `The "${text}" encoding is not supported`);
    }
  }

  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBOM; }

  decode(input = none, options = undefined) {
    const left = this.#streaming ? this.#pending : none;
    if (options !== null) base.needObject(options);
    const stream = !!options?.stream;
    const given = base.bytesOf(input);
    if (!given) {
      throw fault(TypeError, "ERR_INVALID_ARG_TYPE",
        'The "list" argument must be an instance of SharedArrayBuffer, ArrayBuffer or ArrayBufferView.');
    }
    if (!this.#streaming) this.#begun = false;
    this.#streaming = stream;
    return this.#take(join(left, given), stream);
  }

  #take(bytes, stream) {
    const length = byteLength(bytes);
    const end = length - (stream ? this.#open(bytes, length) : 0);
    this.#pending = none;
    if (end < length) setBytes(this.#pending = new Uint8Array(length - end), slice(bytes, end, length));
    if (end === 0) return "";
    const text = host.decode(this.#encoding, slice(bytes, 0, end), this.#fatal, this.#ignoreBOM || this.#begun);
    this.#begun = true;
    if (text !== undefined) return text;
    this.#streaming = false;
    throw fault(TypeError, "ERR_ENCODING_INVALID_ENCODED_DATA", `The encoded data was not valid for encoding ${this.#encoding}`);
  }

  #open(bytes, length) {
    if (whole[this.#encoding]) return length;
    const openEnd = openEnds[this.#encoding];
    return openEnd ? openEnd(bytes, length) : 0;
  }

  [base.inspectSymbol](depth, options, inspect) {
    const fields = { encoding: this.#encoding, fatal: this.#fatal, ignoreBOM: this.#ignoreBOM };
    return base.inspectFields(host.constructorName(this), fields, depth, options, inspect);
  }
}

base.exposeClass(TextEncoder);
base.exposeClass(TextDecoder);
