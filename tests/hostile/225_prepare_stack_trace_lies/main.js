Error.prepareStackTrace = () => { throw new Error("from prepareStackTrace"); };
function thrower() { throw new RangeError("the truth"); }
thrower();
