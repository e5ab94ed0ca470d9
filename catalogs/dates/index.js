// The exports of the catalog: each is an entity. A date is a string such as "2024-02-29".
export { addDays, addMonths, addYears, differenceInDays, differenceInMonths, endOfMonth, startOfMonth } from "./arithmetic.js";
export { addBusinessDays, businessDaysBetween, isBusinessDay } from "./business.js";
export { DateRange } from "./range.js";
export { WEEKDAYS, daysInMonth, isLeapYear, weekNumber, weekday } from "./calendar.js";
export { formatDate, isDate, parseDate } from "./text.js";
