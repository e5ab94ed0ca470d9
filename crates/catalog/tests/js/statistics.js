// Expected results of `statistics`: each line is a check, `[what, got, expected]`.
const near = (a, b) => Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b));
const thrown = (act) => { try { return act(); } catch (error) { return error.name; } };
const {
  RunningStatistics, correlation, covariance, histogram, linearRegression, mean, median, mode, quantile, standardDeviation, sum, summary,
  variance, weightedMean, zScores,
} = statistics;
const data = [2, 4, 4, 4, 5, 5, 7, 9];
const random = (() => { let state = 1; return () => (state = (state * 48271) % 2147483647) / 2147483647; })();
const many = Array.from({ length: 1000 }, () => random() * 100 - 50);
const line = linearRegression([1, 2, 3, 4], [6, 5, 7, 10]);
const counts = (bins) => bins.map((bin) => bin.count);
const [left, right] = [new RunningStatistics(many.slice(0, 300)), new RunningStatistics(many.slice(300))];
const before = JSON.stringify(data);
[
  ["sum", sum([1e100, 1, -1e100, 1]), 2],
  ["sum of none", sum([]), 0],
  ["sum past the largest", sum([1e308, 1e308, 1]), Infinity],
  ["sum of tenths", sum(Array(10).fill(0.1)), 1],
  ["mean", mean(data), 5],
  ["mean of a typed array", mean(new Float32Array([1, 2])), 1.5],
  ["mean of none", thrown(() => mean([])), "RangeError"],
  ["mean of text", thrown(() => mean("123")), "TypeError"],
  ["mean of NaN", thrown(() => mean([1, NaN])), "TypeError"],
  ["weighted mean", weightedMean([1, 2, 3], [3, 0, 1]), 1.5],
  ["weights too few", thrown(() => weightedMean([1, 2], [1])), "RangeError"],
  ["weights all zero", thrown(() => weightedMean([1], [0])), "RangeError"],
  ["weight negative", thrown(() => weightedMean([1, 2], [1, -1])), "RangeError"],
  ["median, odd", median([3, 1, 20]), 3],
  ["median, even", median([10, 9, 1, 2]), 5.5],
  ["median sorts as numbers", median([10, 9, 100]), 10],
  ["mode", mode([3, 1, 3, 1, 2]), [1, 3]],
  ["variance of a sample", near(variance(data), 32 / 7), true],
  ["variance of a population", variance(data, "population"), 4],
  ["variance far from zero", near(variance([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]), 30), true],
  ["variance of one", thrown(() => variance([1])), "RangeError"],
  ["variance of what", thrown(() => variance([1, 2], "both")), "RangeError"],
  ["standard deviation", standardDeviation(data, "population"), 2],
  ["z-scores", zScores([1, 2, 3]), [-1, 0, 1]],
  ["z-scores of equals", thrown(() => zScores([1, 1])), "RangeError"],
  ["quantile", [0, 0.25, 0.5, 0.75, 1].map((share) => quantile([4, 1, 3, 2], share)), [1, 1.75, 2.5, 3.25, 4]],
  ["quantile is the median", quantile(many) === median(many), true],
  ["quantile of one", quantile([7], 0.3), 7],
  ["quantile out of range", thrown(() => quantile([1], 1.5)), "RangeError"],
  ["quantile NaN", thrown(() => quantile([1], NaN)), "RangeError"],
  ["summary", summary([4, 1, 3, 2]), { count: 4, minimum: 1, firstQuartile: 1.75, median: 2.5, thirdQuartile: 3.25, maximum: 4, mean: 2.5 }],
  ["histogram", histogram([0, 1, 2, 3, 4], 2), [{ from: 0, to: 2, count: 2 }, { from: 2, to: 4, count: 3 }]],
  ["histogram by Sturges", counts(histogram([1, 2, 3, 4])), [1, 1, 2]],
  ["histogram of equals", histogram([3, 3], 5), [{ from: 3, to: 3, count: 2 }]],
  ["histogram loses none", sum(counts(histogram(many, 37))), 1000],
  ["histogram's borders hold", histogram(many, 37).every((bin, i, all) => bin.count === many.filter((v) => v >= bin.from && (v < bin.to || (i === all.length - 1 && v === bin.to))).length), true],
  ["histogram of no bins", thrown(() => histogram([1, 2], 0)), "RangeError"],
  ["histogram of too many", thrown(() => histogram([1, 2], 1e9)), "RangeError"],
  ["covariance", near(covariance([1, 2, 3], [2, 4, 7]), 2.5), true],
  ["correlation", correlation([1, 2, 3], [2, 4, 6]), 1],
  ["correlation, opposite", correlation([1, 2, 3], [3, 2, 1]), -1],
  ["correlation, known", near(correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]), 0.8), true],
  ["correlation of the very large", near(correlation([1e150, 2e150, 3e150], [1e150, 2e150, 3.5e150]), 0.9933992677987828), true],
  ["correlation with a constant", thrown(() => correlation([1, 1], [1, 2])), "RangeError"],
  ["correlation of unequal lists", thrown(() => correlation([1, 2], [1, 2, 3])), "RangeError"],
  ["regression", [near(line.slope, 1.4), near(line.intercept, 3.5), near(line.rSquared, 0.7), near(line.predict(10), 17.5)], [true, true, true, true]],
  ["regression on a constant", linearRegression([1, 2], [3, 3]).rSquared, 1],
  ["regression over a constant", thrown(() => linearRegression([1, 1], [1, 2])), "RangeError"],
  ["running mean and variance", [near(new RunningStatistics(many).mean, mean(many)), near(new RunningStatistics(many).variance(), variance(many))], [true, true]],
  ["running extremes", [new RunningStatistics(data).minimum, new RunningStatistics(data).maximum, new RunningStatistics(data).count], [2, 9, 8]],
  ["running on nothing", [new RunningStatistics().mean, new RunningStatistics([1]).variance()].map(Number.isNaN), [true, true]],
  ["running, population", new RunningStatistics(data).standardDeviation("population"), 2],
  ["running, merged", [left.merge(right).count, near(left.merge(right).variance(), variance(many)), near(left.merge(right).mean, mean(many))], [1000, true, true]],
  ["running, merged with none", left.merge(new RunningStatistics()).variance() === left.variance(), true],
  ["running, several lists", RunningStatistics.of([1, 2], [3]).mean, 2],
  ["running, pushed", new RunningStatistics().push(1).pushAll(new Set([2, 3])).mean, 2],
  ["running, not a number", thrown(() => left.push("1")), "TypeError"],
  ["nothing was changed", JSON.stringify(data), before],
]
