const before = globalThis.leftBehind;
globalThis.leftBehind = "its own";
before ?? "nothing";
