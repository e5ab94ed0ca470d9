// Binds the entities of a wave in a session's heap: catalogs by name, entities by symbol. This file is one expression; `script.rs`
// describes its inputs.
//
// The functions it creates run later, on a heap whose code may have changed every prototype. So they use only syntax and the built-in
// functions captured when this was first evaluated, normally on a fresh heap.
(function (global, catalogs, wave, seen) {
  "use strict";
  const KEY = "heapstead:catalogs";
  const VERSION = 1;

  const install = () => {
    const { apply, construct, defineProperty, get, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
    const { freeze, is, prototype: ObjectPrototype } = Object;
    const { isArray } = Array;
    const ProxyConstructor = Proxy;
    // Evaluated catalogs, and all bindings by name.
    const records = { __proto__: null };
    const names = { __proto__: null };

    const put = (object, key, value, enumerable) =>
      defineProperty(object, key, { __proto__: null, value, writable: false, enumerable, configurable: true });
    const add = (list, value) => put(list, list.length, value, true);

    // `f({ p1: a, p3: c })` calls `f(a, undefined, c)`. `call` holds the symbols of the parameters: `{ parameters: ["p1", …], rest }`.
    const positional = (given, call) => {
      if (call === undefined || given.length !== 1) return given;
      const named = given[0];
      if (typeof named !== "object" || named === null || isArray(named)) return given;
      const prototype = getPrototypeOf(named);
      if (prototype !== null && prototype !== ObjectPrototype) return given;
      const keys = ownKeys(named);
      let last = -1;
      for (let i = 0; i < keys.length; i++) {
        const position = call.positions[keys[i]];
        if (position === undefined) return given;
        if (position > last) last = position;
      }
      if (last < 0) return given;
      const args = [];
      for (let i = 0; i <= last; i++) {
        const value = getOwnPropertyDescriptor(named, call.parameters[i]) === undefined ? undefined : named[call.parameters[i]];
        if (call.rest && i === call.parameters.length - 1 && isArray(value)) {
          for (let j = 0; j < value.length; j++) add(args, value[j]);
        } else {
          add(args, value);
        }
      }
      return args;
    };

    const newCall = ({ parameters, rest }) => {
      const positions = { __proto__: null };
      for (let i = 0; i < parameters.length; i++) positions[parameters[i]] = i;
      return { __proto__: null, parameters, positions, rest };
    };

    // An export with its symbols; `call` and `methods` are added when it is exposed. Private members need the export itself as `this`.
    const wrap = (target) => {
      const wrapped = { __proto__: null, target, call: undefined, methods: { __proto__: null }, proxy: undefined };
      wrapped.proxy = new ProxyConstructor(target, {
        __proto__: null,
        apply: (_, receiver, given) => apply(target, receiver, positional(given, wrapped.call)),
        construct: (_, given, newTarget) =>
          construct(target, positional(given, wrapped.call), newTarget === wrapped.proxy ? target : newTarget),
        get: (_, key, receiver) => {
          const method = typeof key === "string" ? wrapped.methods[key] : undefined;
          return method ?? get(target, key, receiver === wrapped.proxy ? target : receiver);
        },
      });
      return wrapped;
    };

    // Methods of the class or object itself. They also work when detached from it.
    const newStaticMethod = (name, call, { proxy, target }) => ({
      [name](...given) {
        return apply(target[name], this === proxy ? target : this, positional(given, call));
      },
    })[name];

    // Methods of an instance are looked up at call time, so that an override in a subclass is used.
    const newMethod = (name, call) => ({
      [name](...given) {
        return apply(this[name], this, positional(given, call));
      },
    })[name];

    const isFixed = (object, key) => {
      const own = getOwnPropertyDescriptor(object, key);
      return own !== undefined && !own.configurable && !own.writable;
    };

    const expose = (wrapped, entity, warn) => {
      wrapped.call = newCall(entity);
      for (let i = 0; i < entity.methods.length; i++) {
        const { symbol, name, isStatic, ...call } = entity.methods[i];
        if (isStatic) {
          const method = newStaticMethod(name, newCall(call), wrapped);
          wrapped.methods[symbol] = method;
          // A proxy must not return a different value for a frozen property.
          if (!isFixed(wrapped.target, name)) wrapped.methods[name] = method;
        } else if (!put(wrapped.target.prototype, symbol, newMethod(name, newCall(call)), false)) {
          warn(symbol, `\`${symbol}\` can't be bound: \`${entity.name}.prototype\` is frozen. Call \`.${name}(…)\` by its name.`);
        }
      }
    };

    const evaluate = (name, { hash, callable, make }) => {
      if (records[name]?.hash === hash) return records[name];
      const made = make(freeze);
      const record = { __proto__: null, hash, wrapped: { __proto__: null }, namespace: { __proto__: null } };
      const keys = ownKeys(made);
      for (let i = 0; i < keys.length; i++) put(record.namespace, keys[i], made[keys[i]], true);
      for (let i = 0; i < callable.length; i++) {
        const key = callable[i];
        record.wrapped[key] = wrap(made[key]);
        put(record.namespace, key, record.wrapped[key].proxy, true);
      }
      freeze(record.namespace);
      records[name] = record;
      return record;
    };

    const bind = (name, value) => {
      const own = getOwnPropertyDescriptor(global, name);
      const isOurs = own === undefined || (name in names && is(own.value, names[name])) || is(own.value, value);
      names[name] = value;
      if (isOurs) put(global, name, value, false);
    };

    // What top-level code gets for a name: a `let` or `const` of the session takes precedence over a global.
    const isSeen = (see, value) => {
      try {
        return is(see(), value);
      } catch {
        return false;
      }
    };

    const run = (catalogs, wave, seen) => {
      const warnings = [];
      const warn = (name, text) => add(warnings, { name, text });
      const all = ownKeys(catalogs);
      for (let i = 0; i < all.length; i++) bind(all[i], evaluate(all[i], catalogs[all[i]]).namespace);
      for (let i = 0; i < wave.length; i++) {
        const { symbol, catalog, ...entity } = wave[i];
        const wrapped = records[catalog].wrapped[entity.name];
        if (wrapped !== undefined) expose(wrapped, entity, warn);
        bind(symbol, records[catalog].namespace[entity.name]);
      }
      const bound = ownKeys(seen);
      for (let i = 0; i < bound.length; i++) {
        const name = bound[i];
        if (isSeen(seen[name], names[name])) continue;
        warn(name, `\`${name}\` is a variable of this session, which was left as it is: use \`globalThis["${KEY}"].names.${name}\` instead.`);
      }
      return warnings;
    };

    const registry = freeze({ __proto__: null, version: VERSION, names, run });
    put(global, KEY, registry, false);
    if (global[KEY] !== registry) throw new TypeError("catalogs can't be bound: this heap's Reflect.defineProperty or global object was changed");
    return registry;
  };

  const installed = global[KEY];
  const registry = installed?.version === VERSION && typeof installed.run === "function" ? installed : install();
  return registry.run(catalogs, wave, seen);
})
