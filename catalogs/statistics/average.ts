// Averages, and the sum they are based on.
import { checkNumbers } from "./check.ts";

/**
 * The sum, with compensation for rounding errors (Neumaier's algorithm).
 * @param values the numbers; the sum of none is 0
 */
export function sum(values: readonly number[]): number {
  checkNumbers(values, 0, "values");
  let total = 0, lost = 0;
  for (const value of values) {
    const next = total + value;
    lost += Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total;
    total = next;
  }
  // If the sum overflows, the compensation is NaN.
  return Number.isFinite(total) ? total + lost : total;
}

/**
 * The arithmetic mean.
 * @param values the numbers, at least one
 */
export function mean(values: readonly number[]): number {
  checkNumbers(values, 1, "values");
  return sum(values) / values.length;
}

/**
 * The weighted mean.
 * @param values the numbers, at least one
 * @param weights the same number of weights, none negative, not all zero
 */
export function weightedMean(values: readonly number[], weights: readonly number[]): number {
  checkNumbers(values, 1, "values");
  checkNumbers(weights, 1, "weights");
  if (values.length !== weights.length) throw new RangeError(`${values.length} values, but ${weights.length} weights`);
  if (weights.some((weight) => weight < 0)) throw new RangeError("a weight is negative");
  const total = sum(weights);
  if (total === 0) throw new RangeError("all weights are zero");
  return sum(values.map((value, i) => value * weights[i]!)) / total;
}

/**
 * The median: the middle number, or the mean of the two middle numbers.
 * @param values the numbers, at least one, in any order
 */
export function median(values: readonly number[]): number {
  checkNumbers(values, 1, "values");
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/**
 * The most frequent numbers in ascending order; more than one if several are equally frequent.
 * @param values the numbers, at least one
 */
export function mode(values: readonly number[]): number[] {
  checkNumbers(values, 1, "values");
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  let most = 0;
  for (const count of counts.values()) most = Math.max(most, count);
  return [...counts].filter(([, count]) => count === most).map(([value]) => value).sort((a, b) => a - b);
}
