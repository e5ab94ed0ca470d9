Promise.prototype.then = function () { return this; };
Promise.prototype.catch = Promise.prototype.finally = Promise.prototype.then;
"poisoned";
