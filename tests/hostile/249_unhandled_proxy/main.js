const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
Promise.reject(proxy);
1;
