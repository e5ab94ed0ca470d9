// The exports of the catalog: each is an entity.
export { mean, median, mode, sum, weightedMean } from "./average.ts";
export { correlation, covariance, linearRegression } from "./relation.ts";
export { histogram } from "./histogram.ts";
export { quantile, summary } from "./quantile.ts";
export { RunningStatistics } from "./running.ts";
export { standardDeviation, variance, zScores } from "./spread.ts";
