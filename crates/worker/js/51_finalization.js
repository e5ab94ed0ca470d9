// FinalizationRegistry whose callbacks never run, which the language allows: V8 can't snapshot a registry with registrations.
const { uncurryThis } = base;
const { TypeError, WeakMap } = globalThis;
const { prototype } = globalThis.FinalizationRegistry;
const NativeRegister = uncurryThis(prototype.register);
const NativeUnregister = uncurryThis(prototype.unregister);
const WeakMapPrototypeSet = uncurryThis(WeakMap.prototype.set);
const WeakMapPrototypeDelete = uncurryThis(WeakMap.prototype.delete);

const canBeHeldWeakly = (value) => {
  try {
    WeakMapPrototypeSet(new WeakMap(), value, true);
    return true;
  } catch {
    return false;
  }
};

class FinalizationRegistry {
  // Only the presence of a registration's token is observable.
  #tokens = new WeakMap();

  static { base.isRegistry = (value) => base.isObject(value) && #tokens in value; }

  constructor(cleanupCallback) {
    if (typeof cleanupCallback !== "function") throw new TypeError("FinalizationRegistry: cleanup must be callable");
  }

  register(target, heldValue, unregisterToken = undefined) {
    if (!base.isRegistry(this)) NativeRegister(this);
    if (!canBeHeldWeakly(target)) throw new TypeError("FinalizationRegistry.prototype.register: invalid target");
    if (target === heldValue) throw new TypeError("FinalizationRegistry.prototype.register: target and holdings must not be same");
    if (unregisterToken === undefined) return;
    needToken(unregisterToken);
    WeakMapPrototypeSet(this.#tokens, unregisterToken, true);
  }

  unregister(unregisterToken) {
    if (!base.isRegistry(this)) NativeUnregister(this);
    needToken(unregisterToken);
    return WeakMapPrototypeDelete(this.#tokens, unregisterToken);
  }
}

function needToken(token) {
  if (canBeHeldWeakly(token)) return;
  const text = typeof token === "symbol" ? base.symbolText(token) : `${token}`;
  throw new TypeError(`Invalid unregisterToken ('${text}')`);
}

Object.defineProperty(FinalizationRegistry.prototype, Symbol.toStringTag, { value: "FinalizationRegistry", configurable: true });
base.expose("FinalizationRegistry", FinalizationRegistry);
