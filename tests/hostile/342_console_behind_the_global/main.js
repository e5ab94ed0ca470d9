delete globalThis.console;
Object.preventExtensions(globalThis);
var box = {};
Object.prototype.console = { set createTask(value) { box.stolen = value; } };
"poisoned";
