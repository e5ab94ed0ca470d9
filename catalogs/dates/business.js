// Business days: Monday to Friday, except holidays.
import { addDays } from "./arithmetic.js";
import { weekday } from "./calendar.js";
import { checkWhole, toDays } from "./text.js";

/** More days than this are probably a mistake. */
const DAYS_MAX = 4_000_000;

function toSet(holidays) {
  const days = new Set();
  for (const holiday of holidays) days.add(toDays(holiday, "holidays"));
  return days;
}

const isOpen = (date, closed) => weekday(date) <= 5 && !closed.has(toDays(date));

/**
 * Whether a date is a Monday to Friday and not a holiday.
 * @param {string} date such as "2024-02-29"
 * @param {Iterable<string>} [holidays=[]] dates that are not business days
 * @returns {boolean}
 */
export function isBusinessDay(date, holidays = []) {
  return isOpen(date, toSet(holidays));
}

/**
 * Adds business days to a date; may be negative. With 0, returns the date itself.
 * @param {string} date such as "2024-02-29"
 * @param {number} days an integer, may be negative
 * @param {Iterable<string>} [holidays=[]] dates that are not business days
 * @returns {string}
 */
export function addBusinessDays(date, days, holidays = []) {
  checkWhole(days, "days");
  if (Math.abs(days) > DAYS_MAX) throw new RangeError(`\`days\` is ${days}: at most ${DAYS_MAX} either way`);
  const closed = toSet(holidays);
  const step = Math.sign(days);
  let at = addDays(date, 0);
  for (let left = Math.abs(days); left > 0; ) {
    at = addDays(at, step);
    if (isOpen(at, closed)) left--;
  }
  return at;
}

/**
 * The number of business days from one date to another, without the second; negative if the second is earlier.
 * @param {string} from such as "2024-01-01"
 * @param {string} to such as "2024-02-01"
 * @param {Iterable<string>} [holidays=[]] dates that are not business days
 * @returns {number}
 */
export function businessDaysBetween(from, to, holidays = []) {
  const [first, last] = [toDays(from, "from"), toDays(to, "to")];
  if (last < first) {
    const count = businessDaysBetween(to, from, holidays);
    return count === 0 ? 0 : -count;
  }
  const weeks = Math.floor((last - first) / 7);
  let count = weeks * 5;
  // 0 is Monday; day 0 (1970-01-01) was a Thursday.
  const isWorkday = (day) => (((day + 3) % 7) + 7) % 7 < 5;
  for (let day = first + weeks * 7; day < last; day++) count += isWorkday(day) ? 1 : 0;
  for (const day of toSet(holidays)) count -= day >= first && day < last && isWorkday(day) ? 1 : 0;
  return count;
}
