// Intl with objects that survive a snapshot: each stores its constructor arguments, and has a native twin only during a run.
const { uncurryThis, isObject, list } = base;
const { apply: ReflectApply, ownKeys: ReflectOwnKeys } = Reflect;
const { create: ObjectCreate, defineProperty, getOwnPropertyDescriptor, getPrototypeOf: ObjectGetPrototypeOf } = Object;
const { Proxy, RangeError, TypeError, WeakMap } = globalThis;
const { iterator: SymbolIterator } = Symbol;
const { getCanonicalLocales } = Intl;
const RangeErrorPrototype = RangeError.prototype;
const StringPrototypeEndsWith = uncurryThis(String.prototype.endsWith);
const WeakMapPrototypeGet = uncurryThis(WeakMap.prototype.get);
const WeakMapPrototypeSet = uncurryThis(WeakMap.prototype.set);

let stateOf;

// Adds a private field to an existing object, because constructors that may be called without `new` can't be classes.
class Stamp extends function (object) { return object; } {
  #state;

  constructor(object, state) {
    super(object);
    this.#state = state;
  }

  static {
    base.isIntl = (value) => isObject(value) && #state in value;
    stateOf = (value, kind) => {
      const state = isObject(value) && #state in value ? value.#state : undefined;
      return state?.kind === kind ? state : undefined;
    };
  }
}

let twins = new WeakMap();
base.onEnd(() => { twins = new WeakMap(); });

function twinOf(state) {
  let twin = WeakMapPrototypeGet(twins, state);
  if (twin === undefined) {
    twin = state.make(state);
    WeakMapPrototypeSet(twins, state, twin);
  }
  return twin;
}

function stamp(prototype, kind, make, twin, source) {
  const state = { kind, make, source, bound: undefined, position: 0 };
  WeakMapPrototypeSet(twins, state, twin);
  return new Stamp(ObjectCreate(prototype), state);
}

// A stack trace refers to the receivers of its frames. So that no error takes a native twin into a snapshot, user code
// never runs inside a twin's methods (arguments are converted to primitives first), and their own errors are thrown again.
function call(method, twin, values) {
  try {
    return ReflectApply(method, twin, values);
  } catch (error) {
    const Kind = ObjectGetPrototypeOf(error) === RangeErrorPrototype ? RangeError : TypeError;
    throw new Kind(error.message);
  }
}

const text = (value) => (isObject(value) ? `${value}` : value);
const date = (value) => (isObject(value) ? +value : value);
const number = (value) => (isObject(value) ? -(-value) : value);

// Stops after the first item that is not a string: the native throws the error for it.
function strings(value) {
  if (value === undefined) return value;
  const items = list();
  for (const item of value) {
    items[items.length] = item;
    if (typeof item !== "string") break;
  }
  let at = 0;
  const next = () => ({ __proto__: null, value: items[at], done: at++ >= items.length });
  return { __proto__: null, [SymbolIterator]: () => ({ __proto__: null, next }) };
}

// In the order in which the specification reads them.
const UNITS = "days hours microseconds milliseconds minutes months nanoseconds seconds weeks years".split(" ");
function duration(value) {
  if (!isObject(value)) return value;
  const copy = { __proto__: null };
  for (let i = 0; i < UNITS.length; i++) copy[UNITS[i]] = date(value[UNITS[i]]);
  return copy;
}

const isNumeric = (key) => key === "roundingIncrement" || StringPrototypeEndsWith(key, "Digits");
const isFlag = (key, kind) => key === "hour12" || key === "ignorePunctuation" || (key === "numeric" && kind === "Collator");

// Forwards the native's reads to the user's options, and records each result as a primitive.
const reader = (kind, options, noted) => new Proxy(noted, {
  __proto__: null,
  get(_, key) {
    const value = options[key];
    noted[key] = !isObject(value) ? value : isFlag(key, kind) ? true : isNumeric(key) ? +value : text(value);
    return noted[key];
  },
});

// The server's default locale and time zone may differ when the twin is created again. Returns the locale that was used as default.
function settle(kind, twin, resolve, tags, noted) {
  const needsZone = kind === "DateTimeFormat" && noted.timeZone === undefined;
  if (tags.length > 0 && !needsZone) return undefined;
  const resolved = ReflectApply(resolve, twin, []);
  if (needsZone) noted.timeZone = resolved.timeZone;
  return tags.length > 0 ? undefined : resolved.locale;
}

function makeFormatter(kind, Native, resolve, prototype, locales, options) {
  const noted = { __proto__: null };
  const tags = getCanonicalLocales(locales);
  const twin = new Native(tags, isObject(options) ? reader(kind, options, noted) : options);
  const home = settle(kind, twin, resolve, tags, noted);
  return stamp(prototype, kind, () => new Native(home ?? tags, noted), twin, home);
}

// If it is requested by name, the default locale may resolve to a less specific one.
const resolvedOptions = (result, state) => (state.source === undefined ? result : base.show(result, "locale", state.source));

function makeLocale(Native, toTag, prototype, tag, options) {
  const twin = new Native(stateOf(tag, "Locale")?.source ?? tag, options);
  const source = ReflectApply(toTag, twin, []);
  return stamp(prototype, "Locale", () => new Native(source), twin, source);
}

// Each native member gets a wrapper with the same name and length. On a foreign receiver the native itself throws the error.
function standIn(prototype, kind, key, native, convert, finish) {
  const count = native.length;
  const members = {
    [key](...given) {
      const state = stateOf(this, kind);
      if (!state) return ReflectApply(native, this, given);
      const values = list();
      for (let i = 0; i < count; i++) values[i] = i < given.length ? convert[i](given[i]) : undefined;
      const result = call(native, twinOf(state), values);
      return finish ? finish(result, state, values) : result;
    },
  };
  if (count > 0) defineProperty(members[key], "length", { value: count });
  base.define(prototype, key, members[key]);
}

function standInGetter(prototype, kind, key, descriptor, convert) {
  const native = descriptor.get;
  const [first, second] = convert;
  const bind = (state) => (key === "compare"
    ? (x, y) => call(call(native, twinOf(state), []), undefined, [first(x), second(y)])
    : (value) => call(call(native, twinOf(state), []), undefined, [first(value)]));
  const members = {
    get [key]() {
      const state = stateOf(this, kind);
      if (!state) return ReflectApply(native, this, []);
      return convert.length === 0 ? call(native, twinOf(state), []) : (state.bound ??= bind(state));
    },
  };
  defineProperty(prototype, key, { ...descriptor, get: getOwnPropertyDescriptor(members, key).get });
}

function standInPrototype(kind, native, convert, finishers) {
  const prototype = ObjectCreate(ObjectGetPrototypeOf(native));
  for (const key of ReflectOwnKeys(native)) {
    const descriptor = getOwnPropertyDescriptor(native, key);
    if (key === "constructor") base.define(prototype, key, undefined);
    else if (descriptor.get) standInGetter(prototype, kind, key, descriptor, convert);
    else if (typeof descriptor.value === "function") standIn(prototype, kind, key, descriptor.value, convert, finishers[key]);
    else defineProperty(prototype, key, descriptor);
  }
  return prototype;
}

function standInConstructor(kind, Native, callable, prototype, make) {
  const Wrapper = function (first, second) {
    if (new.target === undefined && !callable) return Native();
    const wanted = new.target === undefined ? prototype : new.target.prototype;
    return make(isObject(wanted) ? wanted : prototype, first, second);
  };
  for (const key of ReflectOwnKeys(Native)) {
    const descriptor = getOwnPropertyDescriptor(Native, key);
    if (key === "prototype") descriptor.value = prototype;
    defineProperty(Wrapper, key, descriptor);
  }
  base.define(prototype, "constructor", Wrapper);
  base.define(Intl, kind, Wrapper);
}

// The conversions of the arguments of each class's methods, before a native receives them.
const KINDS = {
  Collator: [text, text],
  DateTimeFormat: [date, date],
  DisplayNames: [text],
  DurationFormat: [duration],
  ListFormat: [strings],
  NumberFormat: [number, number],
  PluralRules: [number, number],
  RelativeTimeFormat: [number, text],
  Segmenter: [text],
};

const nativeSegment = Intl.Segmenter.prototype.segment;
const nativeSegments = ObjectGetPrototypeOf(new Intl.Segmenter().segment(""));
const nativeIterate = nativeSegments[SymbolIterator];
const nativeIterator = ObjectGetPrototypeOf(new Intl.Segmenter().segment("")[SymbolIterator]());
const nativeNext = nativeIterator.next;

const segmentIteratorPrototype = standInPrototype("SegmentIterator", nativeIterator, [], {
  __proto__: null,
  next(result, state) {
    if (!result.done) state.position++;
    return result;
  },
});

// A partly used iterator continues where it was: a new twin is moved to the same position.
function resume(state) {
  const twin = call(nativeIterate, twinOf(state.source), []);
  for (let i = 0; i < state.position; i++) call(nativeNext, twin, []);
  return twin;
}

const segmentsPrototype = standInPrototype("Segments", nativeSegments, [date], {
  __proto__: null,
  [SymbolIterator]: (twin, segments) => stamp(segmentIteratorPrototype, "SegmentIterator", resume, twin, segments),
});

function segment(twin, segmenter, values) {
  const input = `${values[0]}`;
  return stamp(segmentsPrototype, "Segments", () => call(nativeSegment, twinOf(segmenter), [input]), twin);
}

for (const kind of Object.keys(KINDS)) {
  const Native = Intl[kind];
  const resolve = Native.prototype.resolvedOptions;
  const prototype = standInPrototype(kind, Native.prototype, KINDS[kind], { __proto__: null, resolvedOptions, segment });
  const callable = kind === "Collator" || kind === "DateTimeFormat" || kind === "NumberFormat";
  standInConstructor(kind, Native, callable, prototype, (wanted, locales, options) =>
    makeFormatter(kind, Native, resolve, wanted, locales, options));
}

const NativeLocale = Intl.Locale;
const nativeToTag = NativeLocale.prototype.toString;
const sameKind = (twin) => makeLocale(NativeLocale, nativeToTag, localePrototype, ReflectApply(nativeToTag, twin, []));
const localePrototype = standInPrototype("Locale", NativeLocale.prototype, [], { __proto__: null, maximize: sameKind, minimize: sameKind });
standInConstructor("Locale", NativeLocale, false, localePrototype, (wanted, tag, options) =>
  makeLocale(NativeLocale, nativeToTag, wanted, tag, options));

// Natives that take locales accept only native Locale objects; for a Locale of this file they receive a list of one tag.
defineProperty(localePrototype, "length", { get() { return 1; }, configurable: true });
defineProperty(localePrototype, "0", { get() { return stateOf(this, "Locale")?.source; }, configurable: true });
