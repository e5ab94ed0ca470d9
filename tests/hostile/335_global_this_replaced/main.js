globalThis.globalThis = null;
delete this.globalThis;
"poisoned";
