globalThis.evaluated = eval("(function () { return 20; })\n//# sourceURL=elsewhere.js");
globalThis.constructed = new Function("return 22; //" + "x".repeat(2_000_000));
"kept";
