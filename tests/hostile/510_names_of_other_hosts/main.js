const names = `process require module exports __dirname __filename Deno Bun Worker fetch XMLHttpRequest WebSocket EventSource importScripts
  navigator location document window self d8 print load read readbuffer readline quit os Realm ShadowRealm WebAssembly SharedArrayBuffer
  inspect copy debug monitor queryObjects getEventListeners $0 $_ gc native host base primordials internalBinding`.split(/\s+/);
names.filter((name) => name in globalThis || (() => { try { return (0, eval)(`typeof ${name}`) !== "undefined"; } catch { return false; } })());
