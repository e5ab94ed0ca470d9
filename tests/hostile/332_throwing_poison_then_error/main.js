for (const name of ["name", "message", "stack", "cause", "constructor", "toString", Symbol.toStringTag, Symbol.toPrimitive]) {
  try {
    Object.defineProperty(Error.prototype, name, { get() { throw new Error("poison"); }, configurable: true });
  } catch {}
}
Object.defineProperty(Object.prototype, "cause", { get() { throw new Error("poison"); }, configurable: true });
"poisoned";
