// AbortController and AbortSignal.
const { uncurryThis, list, isObject, fault, secret, DOMException } = base;
const { apply: ReflectApply } = Reflect;
const { Set, TypeError, RangeError } = globalThis;
const { iterator: SymbolIterator } = Symbol;
const NumberIsInteger = Number.isInteger;
const SetPrototypeAdd = uncurryThis(Set.prototype.add);
const SetPrototypeDelete = uncurryThis(Set.prototype.delete);
const SetPrototypeForEach = uncurryThis(Set.prototype.forEach);

let abort, create;

class AbortSignal extends base.EventTarget {
  #aborted = false;
  #reason;
  // Steps that run on abort before the event is dispatched: removal of listeners.
  #steps;
  // A signal made by any() depends on signals that were not: those are its sources, and it is their dependent.
  #sources;
  #dependents;
  #onabort = null;
  #forward;

  constructor(key) {
    base.onlyInternal(key);
    super();
  }

  static {
    create = () => new AbortSignal(secret);
    base.isSignal = (value) => isObject(value) && #aborted in value;
    base.isAborted = (signal) => signal.#aborted;
    base.addAbortStep = (signal, step) => SetPrototypeAdd(signal.#steps ??= new Set(), step);
    base.removeAbortStep = (signal, step) => SetPrototypeDelete(signal.#steps, step);
    abort = (signal, reason = new DOMException("This operation was aborted", "AbortError")) => {
      if (signal.#aborted) return;
      const all = list();
      all[0] = signal;
      if (signal.#dependents) SetPrototypeForEach(signal.#dependents, (dependent) => { all[all.length] = dependent; });
      // All signals are marked as aborted before the first listener runs.
      const fresh = list();
      for (let i = 0; i < all.length; i++) {
        if (all[i].#aborted) continue;
        all[i].#aborted = true;
        all[i].#reason = reason;
        fresh[fresh.length] = all[i];
      }
      for (let i = 0; i < fresh.length; i++) {
        if (fresh[i].#steps) SetPrototypeForEach(fresh[i].#steps, (step) => step());
        base.emit(fresh[i], "abort");
        fresh[i].#sources = fresh[i].#dependents = undefined;
      }
    };
  }

  get aborted() { return this.#aborted; }
  get reason() { return this.#reason; }
  get onabort() { return this.#onabort; }
  set onabort(handler) {
    this.#onabort = typeof handler === "function" ? handler : null;
    this.#forward ??= (event) => ReflectApply(this.#onabort, this, [event]);
    if (this.#onabort) base.addListener(this, "abort", this.#forward);
    else base.removeListener(this, "abort", this.#forward);
  }

  throwIfAborted() { if (this.#aborted) throw this.#reason; }

  static abort(reason = undefined) {
    const signal = create();
    abort(signal, reason);
    return signal;
  }

  static timeout(delay) {
    if (typeof delay !== "number") throw base.wrongType('"delay" argument', "of type number", delay);
    const inRange = delay >= 0 && delay <= 4294967295;
    if (!NumberIsInteger(delay) || !inRange) {
      const range = NumberIsInteger(delay) ? ">= 0 && <= 4294967295" : "an integer";
      throw fault(RangeError, "ERR_OUT_OF_RANGE", `The value of "delay" is out of range. It must be ${range}. Received ${delay}`);
    }
    const signal = create();
    base.startWeakTimer(delay, () => abort(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError")));
    return signal;
  }

  static any(signals) {
    const given = list();
    if (!isObject(signals) || typeof signals[SymbolIterator] !== "function") {
      throw fault(TypeError, "ERR_INVALID_ARG_TYPE", "signals cannot be converted to sequence.");
    }
    for (const signal of signals) {
      if (!base.isSignal(signal)) {
        throw fault(TypeError, "ERR_INVALID_ARG_TYPE", `signals[${given.length}] is not of type AbortSignal.`);
      }
      given[given.length] = signal;
    }
    const result = create();
    for (let i = 0; i < given.length; i++) {
      if (!given[i].#aborted) continue;
      abort(result, given[i].#reason);
      return result;
    }
    result.#sources = new Set();
    const follow = (source) => {
      SetPrototypeAdd(result.#sources, source);
      SetPrototypeAdd(source.#dependents ??= new Set(), result);
    };
    for (let i = 0; i < given.length; i++) {
      if (given[i].#sources) SetPrototypeForEach(given[i].#sources, follow);
      else follow(given[i]);
    }
    return result;
  }

  [base.inspectSymbol](depth, options, inspect) {
    return base.inspectFields("AbortSignal", { aborted: this.#aborted }, depth, options, inspect);
  }
}

class AbortController {
  #signal = create();

  get signal() { return this.#signal; }
  abort(reason = undefined) { abort(this.#signal, reason); }

  [base.inspectSymbol](depth, options, inspect) {
    return base.inspectFields("AbortController", { signal: this.#signal }, depth, options, inspect);
  }
}

base.exposeClass(AbortSignal);
base.exposeClass(AbortController);
