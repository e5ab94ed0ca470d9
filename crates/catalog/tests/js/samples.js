// Arguments for every callable of the shipped catalogs: `Class` for its constructor, `Class.method` for methods. Instance methods are
// called on an instance made with the constructor's arguments.
({
  statistics: {
    RunningStatistics: [[1, 2, 4]], "RunningStatistics.of": [[1], [2, 3]], "RunningStatistics.push": [3], "RunningStatistics.pushAll": [[5, 6]],
    "RunningStatistics.variance": ["population"], "RunningStatistics.standardDeviation": ["sample"],
    "RunningStatistics.merge": [new statistics.RunningStatistics([7])],
    correlation: [[1, 2, 3], [2, 4, 7]], covariance: [[1, 2, 3], [2, 4, 7]], histogram: [[1, 2, 3], 2], linearRegression: [[1, 2, 3], [2, 4, 7]],
    mean: [[1, 2]], median: [[1, 2]], mode: [[1, 1, 2]], quantile: [[1, 2, 3], 0.2], standardDeviation: [[1, 2], "population"], sum: [[1, 2]],
    summary: [[1, 2]], variance: [[1, 2], "population"], weightedMean: [[1, 2], [3, 1]], zScores: [[1, 2], "population"],
  },
  dates: {
    DateRange: ["2024-01-01", "2024-01-31"], "DateRange.month": ["2024-02-02"], "DateRange.contains": ["2024-01-05"],
    "DateRange.overlaps": [new dates.DateRange("2024-01-31", "2024-02-02")], "DateRange.intersection": [new dates.DateRange("2024-01-30", "2024-02-02")],
    "DateRange.days": [10], "DateRange.toString": [], "DateRange.toJSON": [],
    addBusinessDays: ["2024-01-01", 3, ["2024-01-02"]], addDays: ["2024-01-01", 3], addMonths: ["2024-01-31", 1], addYears: ["2024-02-29", 1],
    businessDaysBetween: ["2024-01-01", "2024-02-01", ["2024-01-02"]], daysInMonth: [2024, 2], differenceInDays: ["2024-01-01", "2024-02-01"],
    differenceInMonths: ["2024-01-01", "2024-02-01"], endOfMonth: ["2024-02-02"], formatDate: ["2024-02-02", "YYYY"],
    isBusinessDay: ["2024-01-02", ["2024-01-02"]], isDate: ["2024-01-02"], isLeapYear: [2024], parseDate: ["2024-01-02"],
    startOfMonth: ["2024-02-02"], weekNumber: ["2024-02-02"], weekday: ["2024-02-02"],
  },
})
