// Statistics of a stream that is never held as a whole.

/** Statistics of numbers that come one by one, without keeping them (Welford's method). */
export class RunningStatistics {
  #count = 0;
  #mean = 0;
  #squares = 0;
  #minimum = Infinity;
  #maximum = -Infinity;

  /** @param values numbers to begin with */
  constructor(values: Iterable<number> = []) {
    this.pushAll(values);
  }

  /**
   * Takes up several lists of numbers at once.
   * @param lists each a list of numbers
   */
  static of(...lists: Iterable<number>[]): RunningStatistics {
    const statistics = new RunningStatistics();
    for (const list of lists) statistics.pushAll(list);
    return statistics;
  }

  /** How many numbers there were. */
  get count(): number {
    return this.#count;
  }

  /** NaN when there were none. */
  get mean(): number {
    return this.#count === 0 ? NaN : this.#mean;
  }

  /** Infinity when there were none. */
  get minimum(): number {
    return this.#minimum;
  }

  /** −Infinity when there were none. */
  get maximum(): number {
    return this.#maximum;
  }

  /**
   * Takes up one number.
   * @param value a finite number
   */
  push(value: number): this {
    if (!Number.isFinite(value)) throw new TypeError(`\`value\` is ${String(value)}: expected a finite number`);
    this.#count++;
    const before = value - this.#mean;
    this.#mean += before / this.#count;
    this.#squares += before * (value - this.#mean);
    this.#minimum = Math.min(this.#minimum, value);
    this.#maximum = Math.max(this.#maximum, value);
    return this;
  }

  /**
   * Takes up many numbers.
   * @param values finite numbers
   */
  pushAll(values: Iterable<number>): this {
    for (const value of values) this.push(value);
    return this;
  }

  /**
   * The variance so far; NaN while there are too few numbers.
   * @param of "sample" divides by n − 1, "population" by n
   */
  variance(of: "sample" | "population" = "sample"): number {
    const divisor = of === "population" ? this.#count : this.#count - 1;
    return divisor < 1 ? NaN : this.#squares / divisor;
  }

  /**
   * The standard deviation so far; NaN while there are too few numbers.
   * @param of "sample" divides by n − 1, "population" by n
   */
  standardDeviation(of: "sample" | "population" = "sample"): number {
    return Math.sqrt(this.variance(of));
  }

  /**
   * A new one, as if it had seen the numbers of both.
   * @param other statistics of other numbers
   */
  merge(other: RunningStatistics): RunningStatistics {
    const merged = new RunningStatistics();
    const count = this.#count + other.#count;
    if (count === 0) return merged;
    const apart = other.#mean - this.#mean;
    merged.#count = count;
    merged.#mean = this.#mean + (apart * other.#count) / count;
    merged.#squares = this.#squares + other.#squares + (apart ** 2 * this.#count * other.#count) / count;
    merged.#minimum = Math.min(this.#minimum, other.#minimum);
    merged.#maximum = Math.max(this.#maximum, other.#maximum);
    return merged;
  }
}
