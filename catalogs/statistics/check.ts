// Validation of the numbers that functions take.

/** Throws if the list is too short or contains anything but finite numbers. */
export function checkNumbers(values: readonly number[], least: number, name: string): void {
  if (!Array.isArray(values) && !ArrayBuffer.isView(values)) throw new TypeError(`\`${name}\` must be an array of numbers`);
  if (values.length < least) throw new RangeError(`\`${name}\` has ${values.length} numbers: at least ${least} are needed`);
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) throw new TypeError(`\`${name}[${i}]\` is ${String(values[i])}: expected a finite number`);
  }
}
