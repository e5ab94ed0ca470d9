const seen = [];
const spy = (where) => function (...values) {
  for (const value of [this, ...values]) {
    if (value !== null && typeof value === "object" && ("output" in value || "classOf" in value || "describeResult" in value)) seen.push(where);
  }
  return undefined;
};
for (const [type, names] of [[Function, ["call", "apply", "bind"]], [Map, ["get", "set", "has", "delete"]], [Set, ["add", "has"]], [WeakMap, ["get", "set"]]]) {
  for (const name of names) type.prototype[name] = spy(`${type.name}.${name}`);
}
Object.defineProperty(Object.prototype, "__spy", { get: spy("spy"), configurable: true });
console.log(new Map([[1, 2]]), [1], new Error("x").message);
new URL("http://a/?b=c").searchParams.append("d", "e");
setTimeout(() => {}, 0);
structuredClone({ a: 1 });
seen;
