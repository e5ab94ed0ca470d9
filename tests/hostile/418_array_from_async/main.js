globalThis.gate = Promise.withResolvers();
globalThis.gathered = Array.fromAsync([1, gate.promise, 3]);
globalThis.counter = new Int32Array(2);
Atomics.add(counter, 0, 5);
"kept";
