// Statistics of a stream of numbers, without storing them.

/** Statistics of numbers that are added one by one and not stored (Welford's method). */
export class RunningStatistics {
  #count = 0;
  #mean = 0;
  #squares = 0;
  #minimum = Infinity;
  #maximum = -Infinity;

  /** @param values initial numbers */
  constructor(values: Iterable<number> = []) {
    this.pushAll(values);
  }

  /**
   * Creates the statistics of several lists of numbers.
   * @param lists each a list of numbers
   */
  static of(...lists: Iterable<number>[]): RunningStatistics {
    const statistics = new RunningStatistics();
    for (const list of lists) statistics.pushAll(list);
    return statistics;
  }

  /** How many numbers were added. */
  get count(): number {
    return this.#count;
  }

  /** The mean; NaN if no numbers were added. */
  get mean(): number {
    return this.#count === 0 ? NaN : this.#mean;
  }

  /** The minimum; Infinity if no numbers were added. */
  get minimum(): number {
    return this.#minimum;
  }

  /** The maximum; −Infinity if no numbers were added. */
  get maximum(): number {
    return this.#maximum;
  }

  /**
   * Adds one number.
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
   * Adds many numbers.
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
   * Returns new statistics, of the numbers of both.
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
