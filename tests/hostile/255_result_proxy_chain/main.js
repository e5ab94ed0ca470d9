let proxy = { inside: 1 };
for (let i = 0; i < 100_000; i++) proxy = new Proxy(proxy, {});
proxy;
