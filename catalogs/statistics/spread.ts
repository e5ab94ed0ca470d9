// Measures of spread: variance, standard deviation, z-scores.
import { mean, sum } from "./average.ts";
import { checkNumbers } from "./check.ts";

/**
 * The variance.
 * @param values the numbers: at least two for a sample, one for a population
 * @param of "sample" divides by n − 1, "population" by n
 */
export function variance(values: readonly number[], of: "sample" | "population" = "sample"): number {
  if (of !== "sample" && of !== "population") throw new RangeError(`\`of\` is ${String(of)}: expected "sample" or "population"`);
  checkNumbers(values, of === "sample" ? 2 : 1, "values");
  const centre = mean(values);
  return sum(values.map((value) => (value - centre) ** 2)) / (of === "sample" ? values.length - 1 : values.length);
}

/**
 * The standard deviation: the square root of the variance.
 * @param values the numbers: at least two for a sample, one for a population
 * @param of "sample" divides by n − 1, "population" by n
 */
export function standardDeviation(values: readonly number[], of: "sample" | "population" = "sample"): number {
  return Math.sqrt(variance(values, of));
}

/**
 * The z-scores: how many standard deviations each number is above the mean.
 * @param values the numbers, at least two, not all equal
 * @param of "sample" divides by n − 1, "population" by n
 */
export function zScores(values: readonly number[], of: "sample" | "population" = "sample"): number[] {
  const deviation = standardDeviation(values, of);
  if (deviation === 0) throw new RangeError("all values are equal: they have no z-scores");
  const centre = mean(values);
  return values.map((value) => (value - centre) / deviation);
}
