// Date ranges.
import { endOfMonth, startOfMonth } from "./arithmetic.js";
import { fromDays, toDays } from "./text.js";

/** All days from one date to another, both included. Immutable; iterates over its dates. */
export class DateRange {
  #first;
  #last;

  /**
   * @param {string} from the first day
   * @param {string} to the last day, not before the first
   */
  constructor(from, to) {
    this.#first = toDays(from, "from");
    this.#last = toDays(to, "to");
    if (this.#last < this.#first) throw new RangeError(`the range ends on ${to}, before it begins on ${from}`);
  }

  /**
   * The month that contains a date.
   * @param {string} date any day of the month
   * @returns {DateRange}
   */
  static month(date) {
    return new DateRange(startOfMonth(date), endOfMonth(date));
  }

  /** @returns {string} the first day */
  get from() {
    return fromDays(this.#first);
  }

  /** @returns {string} the last day */
  get to() {
    return fromDays(this.#last);
  }

  /** @returns {number} how many days */
  get length() {
    return this.#last - this.#first + 1;
  }

  /**
   * Whether the range contains a date.
   * @param {string} date any date
   * @returns {boolean}
   */
  contains(date) {
    const day = toDays(date);
    return day >= this.#first && day <= this.#last;
  }

  /**
   * Whether two ranges share a day.
   * @param {DateRange} other another range
   * @returns {boolean}
   */
  overlaps(other) {
    return this.#first <= other.#last && other.#first <= this.#last;
  }

  /**
   * The days that two ranges share, or null.
   * @param {DateRange} other another range
   * @returns {DateRange | null}
   */
  intersection(other) {
    if (!this.overlaps(other)) return null;
    return new DateRange(fromDays(Math.max(this.#first, other.#first)), fromDays(Math.min(this.#last, other.#last)));
  }

  /**
   * Every `step`th day of the range, starting with the first.
   * @param {number} [step=1] an integer of at least 1
   * @returns {Generator<string>}
   */
  *days(step = 1) {
    if (!Number.isInteger(step) || step < 1) throw new RangeError(`\`step\` is ${String(step)}: expected a whole number from 1`);
    for (let day = this.#first; day <= this.#last; day += step) yield fromDays(day);
  }

  [Symbol.iterator]() {
    return this.days();
  }

  /** The range in ISO 8601 format: "2024-01-01/2024-01-31". */
  toString() {
    return `${this.from}/${this.to}`;
  }

  /** The same text, for JSON. */
  toJSON() {
    return this.toString();
  }
}
