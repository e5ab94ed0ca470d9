Object.prototype.then = function () {};
"poisoned";
