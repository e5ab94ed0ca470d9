globalThis.proxies = [new Proxy({ a: 1 }, { get: (target, name) => target[name] ?? name }), new Proxy(globalThis, {})];
globalThis.revoked = Proxy.revocable({}, {});
revoked.revoke();
"kept";
