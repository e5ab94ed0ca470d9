// Timers, immediates and microtasks: the JavaScript half of the event loop.
const { uncurryThis, list } = base;
const { apply: ReflectApply } = Reflect;
const { Map } = globalThis;
const MapPrototypeGet = uncurryThis(Map.prototype.get);
const MapPrototypeSet = uncurryThis(Map.prototype.set);
const MapPrototypeDelete = uncurryThis(Map.prototype.delete);

// Ids continue from run to run, so that an id from an earlier run never clears a later timer.
let lastId = 0;
let lastOrder = 0;
// A binary heap ordered by (due, order). Each timer knows its index in it.
let heap, byId, strong, immediates, batch, batchNext, passDue, passOrder, firstPass;

function reset() {
  heap = list();
  byId = new Map();
  // Number of timers that keep the run alive: all except those of AbortSignal.timeout.
  strong = 0;
  immediates = list();
  batch = list();
  batchNext = 0;
  passDue = -1;
  passOrder = 0;
  firstPass = true;
}
reset();
base.onBegin(reset);
base.onEnd(reset);

const before = (a, b) => a.due < b.due || (a.due === b.due && a.order < b.order);

function place(timer, index) {
  heap[index] = timer;
  timer.index = index;
}

function rise(timer, start) {
  let index = start;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    if (!before(timer, heap[parent])) break;
    place(heap[parent], index);
    index = parent;
  }
  place(timer, index);
}

function sink(timer, start) {
  let index = start;
  for (;;) {
    let child = 2 * index + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && before(heap[child + 1], heap[child])) child++;
    if (!before(heap[child], timer)) break;
    place(heap[child], index);
    index = child;
  }
  place(timer, index);
}

function unheap(timer) {
  const { index } = timer;
  const last = heap[heap.length - 1];
  heap.length--;
  timer.index = -1;
  if (last === timer) return;
  if (index > 0 && before(last, heap[(index - 1) >> 1])) rise(last, index);
  else sink(last, index);
}

function arm(timer, delay) {
  timer.due = host.now() + delay;
  timer.order = ++lastOrder;
  rise(timer, heap.length);
}

const span = (delay) => {
  const number = +delay;
  return number >= 1 && number <= 2147483647 ? (number - number % 1) : 1;
};

function start(callback, delay, parameters, repeat, weak) {
  const timer = { id: ++lastId, due: 0, order: 0, index: -1, callback, parameters, repeat, weak };
  if (!weak) strong++;
  MapPrototypeSet(byId, timer.id, timer);
  arm(timer, delay);
  return timer.id;
}

function forget(timer) {
  MapPrototypeDelete(byId, timer.id);
  timer.callback = undefined;
  if (!timer.weak) strong--;
}

function clear(id) {
  const timer = MapPrototypeGet(byId, typeof id === "string" ? +id : id);
  if (timer === undefined) return;
  forget(timer);
  if (timer.index >= 0) unheap(timer);
}

const orNone = (parameters) => (parameters.length > 0 ? parameters : undefined);
const call = (callback, parameters) => (parameters ? ReflectApply(callback, undefined, parameters) : callback());

function fire(timer) {
  unheap(timer);
  const { callback, parameters, repeat } = timer;
  if (repeat === 0) forget(timer);
  call(callback, parameters);
  if (repeat > 0 && timer.callback) arm(timer, repeat);
}

function fireImmediate(immediate) {
  const { callback, parameters } = immediate;
  forget(immediate);
  call(callback, parameters);
}

// Node's phases, one callback at a time: first the timers that were due when the pass began, then the immediates that existed by then.
function next() {
  for (;;) {
    const timer = heap[0];
    if (passDue >= 0 && timer && timer.due <= passDue && timer.order <= passOrder) return timer;
    passDue = -1;
    while (batchNext < batch.length) {
      const immediate = batch[batchNext];
      batch[batchNext++] = undefined;
      if (immediate.callback) return immediate;
    }
    // With this slack, setTimeout(f, 0) in the main script runs before its setImmediate, however fast the script was.
    const now = host.now() + (firstPass ? 1 : 0);
    firstPass = false;
    batch = immediates;
    batchNext = 0;
    immediates = list();
    if (batch.length === 0 && !(timer && timer.due <= now)) return undefined;
    passDue = now;
    passOrder = lastOrder;
  }
}

function wait(settled) {
  if (batchNext < batch.length || immediates.length > 0) return 0;
  if (heap.length === 0 || (settled && strong === 0)) return -1;
  if (heap[0].due <= passDue) return 0;
  const left = heap[0].due - host.now();
  return left > 0 ? left : 0;
}

// Runs one callback that is ready and returns 0, so that the caller checks again. If none is ready, returns the milliseconds until the
// next timer, or -1 if nothing is pending. Once the promise of the code has settled (`settled`), timers of AbortSignal.timeout
// do not count as pending.
base.turn = (settled = false) => {
  if (settled && strong === 0) return -1;
  const task = next();
  if (task === undefined) return wait(settled);
  if (task.index >= 0) fire(task);
  else fireImmediate(task);
  return 0;
};

base.startWeakTimer = (delay, callback) => start(callback, delay, undefined, 0, true);
base.reportUncaught = (error) => host.reportUncaught(error);

// Written as methods, so that they are not constructors.
const functions = {
  setTimeout(callback, delay = undefined, ...parameters) {
    base.needFunction(callback);
    return start(callback, span(delay), orNone(parameters), 0, false);
  },
  setInterval(callback, delay = undefined, ...parameters) {
    base.needFunction(callback);
    const repeat = span(delay);
    return start(callback, repeat, orNone(parameters), repeat, false);
  },
  setImmediate(callback, ...parameters) {
    base.needFunction(callback);
    const immediate = { id: ++lastId, due: 0, order: 0, index: -1, callback, parameters: orNone(parameters), repeat: 0, weak: false };
    strong++;
    MapPrototypeSet(byId, immediate.id, immediate);
    immediates[immediates.length] = immediate;
    return immediate.id;
  },
  clearTimeout(id) { clear(id); },
  clearInterval(id) { clear(id); },
  clearImmediate(id) { clear(id); },
  queueMicrotask(callback) {
    base.needFunction(callback);
    host.enqueueMicrotask(() => {
      try { callback(); } catch (error) { host.reportUncaught(error); }
    });
  },
};
for (const name of Object.keys(functions)) base.expose(name, functions[name]);
