// Conversion between text and days. Inside the catalog a date is the number of days since 1970-01-01.
import { daysInMonth } from "./month.js";

const MILLISECONDS_PER_DAY = 86_400_000;

/** @internal */
export function toDays(date, name = "date") {
  const { year, month, day } = parse(date, name);
  const time = new Date(0);
  // Unlike Date.UTC, this does not add 1900 to the years 0 to 99.
  time.setUTCFullYear(year, month - 1, day);
  return time.getTime() / MILLISECONDS_PER_DAY;
}

/** @internal */
export function fromDays(days) {
  const time = new Date(days * MILLISECONDS_PER_DAY);
  return fromParts(time.getUTCFullYear(), time.getUTCMonth() + 1, time.getUTCDate());
}

/** @internal */
export function fromParts(year, month, day) {
  if (!(year >= 0 && year <= 9999)) throw new RangeError(`the year ${year} is outside of 0000 to 9999`);
  const digits = (number, count) => String(number).padStart(count, "0");
  return `${digits(year, 4)}-${digits(month, 2)}-${digits(day, 2)}`;
}

/** @internal */
export function checkWhole(number, name) {
  if (!Number.isSafeInteger(number)) throw new TypeError(`\`${name}\` is ${String(number)}: expected a whole number`);
}

function parse(date, name) {
  const found = typeof date === "string" ? /^(\d{4})-(\d{2})-(\d{2})$/.exec(date) : null;
  if (found === null) throw new TypeError(`\`${name}\` is ${JSON.stringify(date) ?? String(date)}: expected a date such as "2024-02-29"`);
  const [year, month, day] = [Number(found[1]), Number(found[2]), Number(found[3])];
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) {
    throw new RangeError(`\`${name}\` is "${date}": there is no such day`);
  }
  return { year, month, day };
}

/**
 * Year, month (1 to 12) and day of a date; throws if the date does not exist.
 * @param {string} date such as "2024-02-29"
 * @returns {{ year: number, month: number, day: number }}
 */
export function parseDate(date) {
  return parse(date, "date");
}

/**
 * Whether a text is an existing date.
 * @param {unknown} text anything
 * @returns {boolean}
 */
export function isDate(text) {
  try {
    parse(text, "text");
    return true;
  } catch {
    return false;
  }
}

const MONTHS = [
  "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
];
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/**
 * Formats a date by a pattern of YYYY, MMMM (January), MMM (Jan), MM, M, DD, D, dddd (Monday) and ddd (Mon); text in [brackets] is copied.
 * @param {string} date such as "2024-02-29"
 * @param {string} [pattern="D MMMM YYYY"] the format
 * @returns {string}
 */
export function formatDate(date, pattern = "D MMMM YYYY") {
  const { year, month, day } = parse(date, "date");
  const name = DAYS[(((toDays(date) + 3) % 7) + 7) % 7];
  const parts = {
    YYYY: String(year).padStart(4, "0"),
    MMMM: MONTHS[month - 1],
    MMM: MONTHS[month - 1].slice(0, 3),
    MM: String(month).padStart(2, "0"),
    M: String(month),
    DD: String(day).padStart(2, "0"),
    D: String(day),
    dddd: name,
    ddd: name.slice(0, 3),
  };
  return pattern.replace(/\[([^\]]*)\]|YYYY|M{1,4}|D{1,2}|d{3,4}/g, (found, kept) => kept ?? parts[found]);
}
