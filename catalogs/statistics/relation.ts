// Relations between two lists of numbers: covariance, correlation, regression.
import { mean, sum } from "./average.ts";
import { checkNumbers } from "./check.ts";

function deviations(x: readonly number[], y: readonly number[]) {
  checkNumbers(x, 2, "x");
  checkNumbers(y, 2, "y");
  if (x.length !== y.length) throw new RangeError(`\`x\` has ${x.length} numbers, but \`y\` has ${y.length}`);
  const meanX = mean(x), meanY = mean(y);
  return {
    meanX,
    meanY,
    xx: sum(x.map((value) => (value - meanX) ** 2)),
    yy: sum(y.map((value) => (value - meanY) ** 2)),
    xy: sum(x.map((value, i) => (value - meanX) * (y[i]! - meanY))),
  };
}

/**
 * The sample covariance.
 * @param x the numbers, at least two
 * @param y the same number of values
 */
export function covariance(x: readonly number[], y: readonly number[]): number {
  return deviations(x, y).xy / (x.length - 1);
}

/**
 * Pearson's correlation, from −1 to 1.
 * @param x the numbers, at least two, not all equal
 * @param y the same number of values, not all equal
 */
export function correlation(x: readonly number[], y: readonly number[]): number {
  const { xx, yy, xy } = deviations(x, y);
  if (xx === 0 || yy === 0) throw new RangeError(`all of \`${xx === 0 ? "x" : "y"}\` is equal: the correlation is undefined`);
  // One square root is more exact; two are used where the product would overflow or underflow.
  const product = xx * yy;
  const scale = product > 0 && Number.isFinite(product) ? Math.sqrt(product) : Math.sqrt(xx) * Math.sqrt(yy);
  return Math.max(-1, Math.min(1, xy / scale));
}

/**
 * Fits a line by ordinary least squares; also returns R², the share of y's variance that it explains.
 * @param x the numbers, at least two, not all equal
 * @param y the same number of values
 */
export function linearRegression(
  x: readonly number[],
  y: readonly number[],
): { slope: number; intercept: number; rSquared: number; predict(x: number): number } {
  const { meanX, meanY, xx, yy, xy } = deviations(x, y);
  if (xx === 0) throw new RangeError("all of `x` is equal: the regression line is undefined");
  const slope = xy / xx;
  const intercept = meanY - slope * meanX;
  const rSquared = yy === 0 ? 1 : Math.min(1, xy ** 2 / (xx * yy));
  return { slope, intercept, rSquared, predict: (at) => intercept + slope * at };
}
