// Quantiles, and the summary based on them.
import { mean } from "./average.ts";
import { checkNumbers } from "./check.ts";

/**
 * The quantile, linearly interpolated (R type 7).
 * @param values the numbers, at least one, in any order
 * @param share from 0 (the minimum) to 1 (the maximum)
 */
export function quantile(values: readonly number[], share: number = 0.5): number {
  checkNumbers(values, 1, "values");
  return ofSorted(Float64Array.from(values).sort(), share);
}

/**
 * Count, minimum, quartiles, maximum and mean.
 * @param values the numbers, at least one
 */
export function summary(
  values: readonly number[],
): { count: number; minimum: number; firstQuartile: number; median: number; thirdQuartile: number; maximum: number; mean: number } {
  checkNumbers(values, 1, "values");
  const sorted = Float64Array.from(values).sort();
  return {
    count: sorted.length,
    minimum: sorted[0]!,
    firstQuartile: ofSorted(sorted, 0.25),
    median: ofSorted(sorted, 0.5),
    thirdQuartile: ofSorted(sorted, 0.75),
    maximum: sorted[sorted.length - 1]!,
    mean: mean(values),
  };
}

function ofSorted(sorted: Float64Array, share: number): number {
  if (!(share >= 0 && share <= 1)) throw new RangeError(`\`share\` is ${String(share)}: expected a number from 0 to 1`);
  const at = (sorted.length - 1) * share;
  const below = Math.floor(at);
  const low = sorted[below]!, high = sorted[Math.ceil(at)]!;
  return low + (high - low) * (at - below);
}
