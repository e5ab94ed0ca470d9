const { deleteProperty, ownKeys } = Reflect;
const prototypes = [Array.prototype, Function.prototype, Promise.prototype, Map.prototype, Set.prototype, String.prototype, Object.prototype];
for (let i = 0; i < prototypes.length; i++) {
  const keys = ownKeys(prototypes[i]);
  for (let j = 0; j < keys.length; j++) deleteProperty(prototypes[i], keys[j]);
}
"poisoned";
