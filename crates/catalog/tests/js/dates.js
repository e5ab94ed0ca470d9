// Expected results of `dates`: each line is a check, `[what, got, expected]`.
const thrown = (act) => { try { return act(); } catch (error) { return error.name; } };
const {
  DateRange, WEEKDAYS, addBusinessDays, addDays, addMonths, addYears, businessDaysBetween, daysInMonth, differenceInDays, differenceInMonths,
  endOfMonth, formatDate, isBusinessDay, isDate, isLeapYear, parseDate, startOfMonth, weekNumber, weekday,
} = dates;
const iso = (date) => { const { year, week } = weekNumber(date); return `${year}-W${week}`; };
// A slow reference implementation.
const counted = (from, to, holidays) => [...new DateRange(from, to)].slice(0, -1).filter((date) => isBusinessDay(date, holidays)).length;
const holidays = ["2024-01-01", "2024-01-06", "2024-03-29", "2024-03-29"];
const year = new DateRange("2024-01-01", "2024-12-31");
[
  ["parse", parseDate("2024-02-29"), { year: 2024, month: 2, day: 29 }],
  ["no such day", thrown(() => parseDate("2023-02-29")), "RangeError"],
  ["no such month", thrown(() => parseDate("2023-13-01")), "RangeError"],
  ["not a date", [thrown(() => parseDate("2024-2-9")), thrown(() => parseDate(20240229)), thrown(() => parseDate())], ["TypeError", "TypeError", "TypeError"]],
  ["is a date", ["2024-02-29", "2100-02-29", "2000-02-29", "", null, "2024-00-10", "2024-01-00"].map(isDate), [true, false, true, false, false, false, false]],
  ["format", formatDate("2024-02-09"), "9 February 2024"],
  ["format in all parts", formatDate("2024-02-09", "dddd ddd D DD M MM MMM MMMM YYYY [D of] x"), "Friday Fri 9 09 2 02 Feb February 2024 D of x"],
  ["format before 1970", formatDate("1969-12-31", "ddd"), "Wed"],
  ["format a bad date", thrown(() => formatDate("x")), "TypeError"],
  ["leap years", [1900, 2000, 2023, 2024].map(isLeapYear), [false, true, false, true]],
  ["days in months", Array.from({ length: 12 }, (_, i) => daysInMonth(2023, i + 1)), [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]],
  ["days in February", daysInMonth(2024, 2), 29],
  ["days in no month", thrown(() => daysInMonth(2024, 13)), "RangeError"],
  ["add days", [addDays("2024-02-28", 2), addDays("2024-01-01", -1), addDays("0099-12-31", 1)], ["2024-03-01", "2023-12-31", "0100-01-01"]],
  ["add half a day", thrown(() => addDays("2024-01-01", 0.5)), "TypeError"],
  ["add days past the end", thrown(() => addDays("9999-12-31", 1)), "RangeError"],
  ["add months, clamped", [addMonths("2024-01-31", 1), addMonths("2023-01-31", 1), addMonths("2024-03-31", -1), addMonths("2024-08-31", 1)], ["2024-02-29", "2023-02-28", "2024-02-29", "2024-09-30"]],
  ["add months over years", [addMonths("2024-11-15", 3), addMonths("2024-02-15", -14), addMonths("2024-05-05", 0)], ["2025-02-15", "2022-12-15", "2024-05-05"]],
  ["add years", [addYears("2024-02-29", 1), addYears("2024-02-29", 4), addYears("2024-02-29", -4)], ["2025-02-28", "2028-02-29", "2020-02-29"]],
  ["add years before the first", thrown(() => addYears("0001-01-01", -2)), "RangeError"],
  ["difference in days", [differenceInDays("2024-01-01", "2024-12-31"), differenceInDays("2024-03-01", "2024-02-28"), differenceInDays("1969-12-31", "1970-01-01")], [365, -2, 1]],
  ["difference in months", [["2024-01-31", "2024-02-29"], ["2024-01-31", "2024-02-28"], ["2024-01-15", "2025-01-14"], ["2024-03-31", "2024-02-29"], ["2024-03-15", "2024-01-16"], ["2024-01-01", "2024-01-31"]].map(([a, b]) => differenceInMonths(a, b)), [1, 0, 11, -1, -1, 0]],
  ["month's ends", [startOfMonth("2024-02-15"), endOfMonth("2024-02-15"), endOfMonth("9999-12-01")], ["2024-02-01", "2024-02-29", "9999-12-31"]],
  ["weekday", [weekday("2024-02-29"), weekday("1970-01-01"), weekday("1969-12-28"), weekday("0001-01-01")], [4, 4, 7, 1]],
  ["weekday's name", WEEKDAYS.thursday === weekday("2024-02-29"), true],
  ["weeks around New Year", ["2005-01-01", "2005-01-02", "2005-12-31", "2007-12-30", "2007-12-31", "2008-12-28", "2008-12-29", "2009-12-31", "2010-01-03", "2020-12-31", "2024-12-30"].map(iso), ["2004-W53", "2004-W53", "2005-W52", "2007-W52", "2008-W1", "2008-W52", "2009-W1", "2009-W53", "2009-W53", "2020-W53", "2025-W1"]],
  ["weeks of a year rise by one", [...year].every((date) => iso(addDays(date, 7)) !== iso(date) && iso(addDays(date, 1 - weekday(date))) === iso(date)), true],
  ["business days", [isBusinessDay("2024-03-28"), isBusinessDay("2024-03-29", holidays), isBusinessDay("2024-03-30")], [true, false, false]],
  ["add business days", [addBusinessDays("2024-03-28", 1), addBusinessDays("2024-03-28", 1, holidays), addBusinessDays("2024-04-01", -1, holidays), addBusinessDays("2024-03-30", 0)], ["2024-03-29", "2024-04-01", "2024-03-28", "2024-03-30"]],
  ["business days between", [businessDaysBetween("2024-01-01", "2025-01-01"), businessDaysBetween("2024-01-01", "2025-01-01", holidays), businessDaysBetween("2024-01-06", "2024-01-07"), businessDaysBetween("2024-01-08", "2024-01-01")], [262, 260, 0, -5]],
  ["business days, counted", [...new DateRange("2024-01-01", "2024-02-15")].every((from) => counted(from, "2024-04-03", holidays) === businessDaysBetween(from, "2024-04-03", holidays)), true],
  ["business days, a bad holiday", thrown(() => isBusinessDay("2024-01-01", ["x"])), "TypeError"],
  ["range", [year.from, year.to, year.length, [...year].length, String(year)], ["2024-01-01", "2024-12-31", 366, 366, "2024-01-01/2024-12-31"]],
  ["range as JSON", JSON.stringify({ year }), '{"year":"2024-01-01/2024-12-31"}'],
  ["range of a month", [String(DateRange.month("2023-02-10")), String(DateRange.month("9999-12-31"))], ["2023-02-01/2023-02-28", "9999-12-01/9999-12-31"]],
  ["range contains", [year.contains("2024-12-31"), year.contains("2025-01-01")], [true, false]],
  ["range overlaps", [year.overlaps(new DateRange("2024-12-31", "2025-06-01")), year.overlaps(new DateRange("2025-01-01", "2025-06-01"))], [true, false]],
  ["range intersection", [String(year.intersection(new DateRange("2024-12-01", "2025-06-01"))), year.intersection(new DateRange("2025-01-01", "2025-06-01"))], ["2024-12-01/2024-12-31", null]],
  ["range in steps", [...new DateRange("2024-02-26", "2024-03-05").days(7)], ["2024-02-26", "2024-03-04"]],
  ["range backwards", thrown(() => new DateRange("2024-01-02", "2024-01-01")), "RangeError"],
  ["range in no steps", thrown(() => [...year.days(0)]), "RangeError"],
]
