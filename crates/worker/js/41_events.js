// Event, CustomEvent and EventTarget: a single target, without a tree to bubble through.
const { uncurryThis, list, isObject, fault } = base;
const { defineProperty: ObjectDefineProperty } = Object;
const { apply: ReflectApply } = Reflect;
const { Error, Map } = globalThis;
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeSet = uncurryThis(Map.prototype.set);
const MapPrototypeDelete = uncurryThis(Map.prototype.delete);

let stateOf;

class Event {
  #state;

  constructor(type, options = undefined) {
    base.needArguments(arguments.length, "type");
    if (options !== null) base.needObject(options);
    this.#state = {
      type: `${type}`,
      bubbles: !!options?.bubbles,
      cancelable: !!options?.cancelable,
      composed: !!options?.composed,
      time: host.now(),
      trusted: false,
      target: null,
      current: null,
      prevented: false,
      passive: false,
      stopped: false,
      halted: false,
    };
  }

  static { stateOf = (value) => (isObject(value) && #state in value ? value.#state : undefined); }

  get type() { return this.#state.type; }
  get bubbles() { return this.#state.bubbles; }
  get cancelable() { return this.#state.cancelable; }
  get composed() { return this.#state.composed; }
  get timeStamp() { return this.#state.time; }
  get isTrusted() { return this.#state.trusted; }
  get target() { return this.#state.target; }
  get srcElement() { return this.#state.target; }
  get currentTarget() { return this.#state.current; }
  get eventPhase() { return this.#state.current ? 2 : 0; }
  get defaultPrevented() { return this.#state.prevented; }
  get returnValue() { return !this.#state.prevented; }
  set returnValue(value) { if (!value) this.#prevent(); }
  get cancelBubble() { return this.#state.stopped; }
  set cancelBubble(value) { if (value) this.#state.stopped = true; }
  composedPath() { return this.#state.current ? [this.#state.current] : []; }
  preventDefault() { this.#prevent(); }
  stopPropagation() { this.#state.stopped = true; }
  stopImmediatePropagation() { this.#state.stopped = this.#state.halted = true; }

  initEvent(type, bubbles = false, cancelable = false) {
    base.needArguments(arguments.length, "type");
    const state = this.#state;
    if (state.current) return;
    state.type = `${type}`;
    state.bubbles = !!bubbles;
    state.cancelable = !!cancelable;
    state.prevented = state.stopped = state.halted = false;
  }

  #prevent() {
    const state = this.#state;
    if (state.cancelable && !state.passive) state.prevented = true;
  }

  [base.inspectSymbol](depth, options, inspect) {
    const name = host.constructorName(this);
    if (depth < 0) return name;
    const { type, prevented, cancelable, time } = this.#state;
    return base.inspectFields(name, { type, defaultPrevented: prevented, cancelable, timeStamp: time }, depth, options, inspect);
  }
}

["NONE", "CAPTURING_PHASE", "AT_TARGET", "BUBBLING_PHASE"].forEach((name, value) => {
  ObjectDefineProperty(Event, name, { value, enumerable: true });
  ObjectDefineProperty(Event.prototype, name, { value, enumerable: true });
});

class CustomEvent extends Event {
  #detail;

  constructor(type, options = undefined) {
    base.needArguments(arguments.length, "type");
    super(type, options);
    this.#detail = options?.detail ?? null;
  }

  get detail() { return this.#detail; }

  initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
    base.needArguments(arguments.length, "type");
    if (stateOf(this).current) return;
    initEvent(this, type, bubbles, cancelable);
    this.#detail = detail;
  }
}
const initEvent = uncurryThis(Event.prototype.initEvent);

class EventTarget {
  #listeners = new Map();

  addEventListener(type, callback, options = undefined) {
    base.needArguments(arguments.length, "type", "listener");
    const choice = isObject(options) ? options : undefined;
    const capture = choice ? !!choice.capture : !!options;
    const signal = choice?.signal;
    const listener = { callback, capture, once: !!choice?.once, passive: !!choice?.passive, removed: false, signal, drop: undefined };
    if (signal !== undefined && !base.isSignal(signal)) {
      throw base.wrongType('"options.signal" property', "an instance of AbortSignal", signal);
    }
    if (callback === undefined || callback === null) return;
    if (!isObject(callback)) throw base.wrongType('"listener" argument', "an instance of EventListener", callback);
    add(this.#listeners, `${type}`, listener);
  }

  removeEventListener(type, callback, options = undefined) {
    base.needArguments(arguments.length, "type", "listener");
    const capture = isObject(options) ? !!options.capture : !!options;
    const name = `${type}`;
    const found = find(MapPrototypeGet(this.#listeners, name), callback, capture);
    if (found) remove(this.#listeners, name, found);
  }

  dispatchEvent(event) {
    base.needArguments(arguments.length, "event");
    const state = stateOf(event);
    const listeners = this.#listeners;
    if (!state) throw base.wrongType('"event" argument', "an instance of Event", event);
    if (state.current) throw fault(Error, "ERR_EVENT_RECURSION", `The event "${state.type}" is already being dispatched`);
    return dispatch(this, listeners, event, state);
  }

  static {
    base.addListener = (target, type, callback) => {
      const capture = false, once = false, passive = false, removed = false, signal = undefined, drop = undefined;
      add(target.#listeners, type, { callback, capture, once, passive, removed, signal, drop });
    };
    base.removeListener = (target, type, callback) => {
      const found = find(MapPrototypeGet(target.#listeners, type), callback, false);
      if (found) remove(target.#listeners, type, found);
    };
    base.emit = (target, type) => {
      const event = new Event(type);
      const state = stateOf(event);
      state.trusted = true;
      dispatch(target, target.#listeners, event, state);
    };
  }

  [base.inspectSymbol](depth, options, inspect) {
    return base.inspectFields(host.constructorName(this), {}, depth, options, inspect);
  }
}

function find(listeners, callback, capture) {
  for (let i = 0; i < (listeners ? listeners.length : 0); i++) {
    if (listeners[i].callback === callback && listeners[i].capture === capture) return listeners[i];
  }
  return undefined;
}

function add(map, type, listener) {
  const { signal } = listener;
  const present = MapPrototypeGet(map, type);
  if ((signal && base.isAborted(signal)) || find(present, listener.callback, listener.capture)) return;
  if (signal) {
    listener.drop = () => remove(map, type, listener);
    base.addAbortStep(signal, listener.drop);
  }
  const listeners = present ?? list();
  listeners[listeners.length] = listener;
  if (!present) MapPrototypeSet(map, type, listeners);
}

// A dispatch in progress continues with the list it started with, so removal creates a new list.
function remove(map, type, listener) {
  if (listener.removed) return;
  listener.removed = true;
  if (listener.signal) base.removeAbortStep(listener.signal, listener.drop);
  const present = MapPrototypeGet(map, type);
  const rest = list();
  for (let i = 0; i < present.length; i++) {
    if (present[i] !== listener) rest[rest.length] = present[i];
  }
  if (rest.length > 0) MapPrototypeSet(map, type, rest);
  else MapPrototypeDelete(map, type);
}

function invoke(target, event, callback) {
  try {
    if (typeof callback === "function") ReflectApply(callback, target, [event]);
    else ReflectApply(callback.handleEvent, callback, [event]);
  } catch (error) {
    base.reportUncaught(error);
  }
}

function dispatch(target, map, event, state) {
  state.target = state.current = target;
  const listeners = MapPrototypeGet(map, state.type);
  const count = listeners && !state.stopped ? listeners.length : 0;
  for (let i = 0; i < count && !state.halted; i++) {
    const listener = listeners[i];
    if (listener.removed) continue;
    if (listener.once) remove(map, state.type, listener);
    state.passive = listener.passive;
    invoke(target, event, listener.callback);
    state.passive = false;
  }
  state.current = null;
  state.stopped = state.halted = false;
  return !state.prevented;
}

base.exposeClass(Event);
base.exposeClass(CustomEvent);
base.exposeClass(EventTarget);
base.EventTarget = EventTarget;
