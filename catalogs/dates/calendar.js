// Weeks and weekdays as in ISO 8601: Monday is 1, and week 1 has the year's first Thursday.
import { parseDate, toDays } from "./text.js";

export { daysInMonth, isLeapYear } from "./month.js";

/** The numbers that `weekday` returns. */
export const WEEKDAYS = Object.freeze({ monday: 1, tuesday: 2, wednesday: 3, thursday: 4, friday: 5, saturday: 6, sunday: 7 });

/**
 * The day of the week, from 1 (Monday) to 7 (Sunday).
 * @param {string} date such as "2024-02-29"
 * @returns {number}
 */
export function weekday(date) {
  // Day 0 was a Thursday.
  return ((((toDays(date) + 3) % 7) + 7) % 7) + 1;
}

/**
 * The ISO week and the year it belongs to, which may differ from the date's year around New Year.
 * @param {string} date such as "2024-12-30"
 * @returns {{ year: number, week: number }}
 */
export function weekNumber(date) {
  const thursday = toDays(date) - weekday(date) + 4;
  const { year } = parseDate(date);
  const first = (of) => {
    const january4 = `${String(of).padStart(4, "0")}-01-04`;
    return toDays(january4) - weekday(january4) + 4;
  };
  const isIn = (of) => thursday >= first(of) && (of === 9999 || thursday < first(of + 1));
  const of = [year, year + 1, year - 1].find((candidate) => candidate >= 0 && candidate <= 9999 && isIn(candidate));
  if (of === undefined) throw new RangeError(`the week of ${date} belongs to a year outside of 0000 to 9999`);
  return { year: of, week: (thursday - first(of)) / 7 + 1 };
}
