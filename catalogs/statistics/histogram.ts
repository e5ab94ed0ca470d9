// Histograms with bins of equal width.
import { checkNumbers } from "./check.ts";

/** More than any histogram needs, so that a mistyped number does not fill the heap. */
const BINS_MAX = 100_000;

/**
 * Counts numbers into bins of equal width from the smallest to the largest. A number on a boundary is counted in the bin above it; the largest number in the last bin.
 * @param values the numbers, at least one
 * @param bins number of bins; if omitted, by Sturges' rule
 */
export function histogram(values: readonly number[], bins?: number): { from: number; to: number; count: number }[] {
  checkNumbers(values, 1, "values");
  const count = bins ?? Math.ceil(Math.log2(values.length)) + 1;
  if (!Number.isInteger(count) || count < 1 || count > BINS_MAX) {
    throw new RangeError(`\`bins\` is ${String(bins)}: expected a whole number from 1 to ${BINS_MAX}`);
  }
  let minimum = Infinity, maximum = -Infinity;
  for (const value of values) {
    if (value < minimum) minimum = value;
    if (value > maximum) maximum = value;
  }
  // If all numbers are equal, one bin contains them all.
  if (minimum === maximum) return [{ from: minimum, to: maximum, count: values.length }];
  const border = (i: number): number => (i === count ? maximum : minimum + ((maximum - minimum) * i) / count);
  const made = Array.from({ length: count }, (_, i) => ({ from: border(i), to: border(i + 1), count: 0 }));
  for (const value of values) {
    let i = Math.min(count - 1, Math.floor(((value - minimum) / (maximum - minimum)) * count));
    // Rounding may give an index one bin off.
    while (i > 0 && value < made[i]!.from) i--;
    while (i < count - 1 && value >= made[i]!.to) i++;
    made[i]!.count++;
  }
  return made;
}
