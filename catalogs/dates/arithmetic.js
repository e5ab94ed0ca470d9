// Date addition and subtraction.
import { daysInMonth } from "./month.js";
import { checkWhole, fromDays, fromParts, parseDate, toDays } from "./text.js";

/**
 * Adds days to a date; may be negative.
 * @param {string} date such as "2024-02-29"
 * @param {number} days an integer, may be negative
 * @returns {string}
 */
export function addDays(date, days) {
  checkWhole(days, "days");
  return fromDays(toDays(date) + days);
}

/**
 * Adds months to a date. If the month has no such day, returns its last day: a month after 31 January is 28 or 29 February.
 * @param {string} date such as "2024-01-31"
 * @param {number} months an integer, may be negative
 * @returns {string}
 */
export function addMonths(date, months) {
  checkWhole(months, "months");
  const { year, month, day } = parseDate(date);
  const index = year * 12 + (month - 1) + months;
  const [newYear, newMonth] = [Math.floor(index / 12), (((index % 12) + 12) % 12) + 1];
  return fromParts(newYear, newMonth, Math.min(day, daysInMonth(newYear, newMonth)));
}

/**
 * Adds years to a date; 29 February becomes 28 February if the year is not a leap year.
 * @param {string} date such as "2024-02-29"
 * @param {number} years an integer, may be negative
 * @returns {string}
 */
export function addYears(date, years) {
  checkWhole(years, "years");
  return addMonths(date, years * 12);
}

/**
 * The number of days from one date to another; negative if the second is earlier.
 * @param {string} from such as "2024-01-01"
 * @param {string} to such as "2024-03-01"
 * @returns {number}
 */
export function differenceInDays(from, to) {
  return toDays(to, "to") - toDays(from, "from");
}

/**
 * The number of complete months from one date to another: the most that `addMonths` can add without passing the second.
 * @param {string} from such as "2024-01-31"
 * @param {string} to such as "2024-03-01"
 * @returns {number}
 */
export function differenceInMonths(from, to) {
  const [a, b] = [parseDate(from), parseDate(to)];
  const months = (b.year - a.year) * 12 + (b.month - a.month);
  const reached = addMonths(from, months);
  if (months > 0 && reached > to) return months - 1;
  if (months < 0 && reached < to) return months + 1;
  return months;
}

/**
 * The first day of a date's month.
 * @param {string} date such as "2024-02-29"
 * @returns {string}
 */
export function startOfMonth(date) {
  const { year, month } = parseDate(date);
  return fromParts(year, month, 1);
}

/**
 * The last day of a date's month.
 * @param {string} date such as "2024-02-01"
 * @returns {string}
 */
export function endOfMonth(date) {
  const { year, month } = parseDate(date);
  return fromParts(year, month, daysInMonth(year, month));
}
