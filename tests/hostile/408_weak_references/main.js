globalThis.target = { alive: true };
globalThis.refs = [new WeakRef(target), new WeakRef({ alive: false })];
globalThis.weakMap = new WeakMap([[target, 1], [{}, 2]]);
globalThis.weakSet = new WeakSet([target, {}]);
"kept";
