const lie = function* () { yield "a lie"; };
Array.prototype[Symbol.iterator] = Array.prototype.values = Array.prototype.keys = Array.prototype.entries = lie;
String.prototype[Symbol.iterator] = Map.prototype[Symbol.iterator] = Set.prototype[Symbol.iterator] = lie;
Object.getPrototypeOf([][Symbol.iterator]()).next = () => ({ done: true });
Object.getPrototypeOf(Object.getPrototypeOf(new Map().entries())).next = () => ({ done: true });
"poisoned";
