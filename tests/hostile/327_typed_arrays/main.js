const TypedArray = Object.getPrototypeOf(Uint8Array);
for (const name of ["length", "byteLength", "buffer", "byteOffset", Symbol.toStringTag]) {
  Object.defineProperty(TypedArray.prototype, name, { get() { return "a lie"; }, configurable: true });
}
TypedArray.prototype[Symbol.iterator] = TypedArray.prototype.set = TypedArray.prototype.subarray = () => "a lie";
Object.defineProperty(ArrayBuffer.prototype, "byteLength", { get() { return 1e9; }, configurable: true });
"poisoned";
