// performance: the clock of the run.
const { secret } = base;

class Performance extends base.EventTarget {
  #brand = true;

  constructor(key) {
    base.onlyInternal(key);
    super();
  }

  now() {
    this.#brand;
    return host.now();
  }

  get timeOrigin() {
    this.#brand;
    return host.wallClock();
  }

  toJSON() {
    this.#brand;
    return { timeOrigin: host.wallClock() };
  }

  [base.inspectSymbol](depth, options, inspect) {
    return base.inspectFields("Performance", { timeOrigin: this.timeOrigin }, depth, options, inspect);
  }
}

base.exposeClass(Performance);
base.expose("performance", new Performance(secret));
