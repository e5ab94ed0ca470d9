globalThis.controller = new AbortController();
globalThis.timeout = AbortSignal.timeout(1e6);
globalThis.any = AbortSignal.any([controller.signal, timeout]);
globalThis.target = new EventTarget();
globalThis.heard = 0;
target.addEventListener("tick", () => { heard++; }, { signal: controller.signal });
globalThis.digest = crypto.subtle.digest("SHA-256", new Uint8Array(3));
"kept";
