Object.freeze(console);
Object.setPrototypeOf(Object.getPrototypeOf(console), new Proxy({}, {}));
"poisoned";
