// Lengths of months, and leap years.

/**
 * Whether a year has a 29 February.
 * @param {number} year such as 2024
 * @returns {boolean}
 */
export const isLeapYear = (year) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;

/**
 * How many days a month has.
 * @param {number} year such as 2024
 * @param {number} month from 1 to 12
 * @returns {number}
 */
export function daysInMonth(year, month) {
  if (!(Number.isInteger(month) && month >= 1 && month <= 12)) throw new RangeError(`\`month\` is ${String(month)}: expected 1 to 12`);
  if (month === 2) return isLeapYear(year) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
