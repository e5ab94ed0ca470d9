const names = `process require module exports Deno Bun Worker fetch WebSocket importScripts navigator location document window self d8 print
  load read quit os Realm ShadowRealm WebAssembly SharedArrayBuffer inspect copy debug monitor $0 $_ gc host base`.split(/\s+/);
names.filter((name) => name in globalThis);
