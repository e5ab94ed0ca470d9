Object.prototype[Symbol.toPrimitive] = () => "a lie";
Object.prototype.toString = Object.prototype.valueOf = () => "a lie";
Object.prototype[Symbol.toStringTag] = "a lie";
"poisoned";
