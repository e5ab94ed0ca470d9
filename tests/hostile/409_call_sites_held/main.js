Error.prepareStackTrace = (error, sites) => sites;
globalThis.sites = new Error("sites").stack;
Error.prepareStackTrace = undefined;
globalThis.errors = [new Error("a"), new AggregateError([new TypeError("b")]), (() => { try { null.x; } catch (e) { return e; } })()];
"kept";
