const kept = [];
const map = new WeakMap();
for (;;) {
  const key = {};
  map.set(key, new WeakRef(key));
  kept.push(key);
}
