const take = (buffer) => { try { buffer.transfer(); } catch {} };
const attempts = [
  () => { const view = new Uint8Array(1 << 16); new TextEncoder().encodeInto({ toString() { take(view.buffer); return "x".repeat(1 << 16); } }, view); },
  () => { const view = new Uint8Array(1 << 16); new TextDecoder().decode(view, { get stream() { take(view.buffer); return true; } }); },
  () => { const view = new Uint8Array(1 << 16); take(view.buffer); crypto.getRandomValues(view); },
  () => { const buffer = new ArrayBuffer(1 << 16, { maxByteLength: 1 << 17 }); const view = new Uint8Array(buffer, 1 << 15); buffer.resize(8); crypto.getRandomValues(view); },
  () => { const buffer = new ArrayBuffer(1 << 16); structuredClone({ get a() { take(buffer); return buffer; } }, { transfer: [buffer] }); },
  () => { const buffer = new ArrayBuffer(1 << 16); structuredClone(buffer, { transfer: [buffer, buffer] }); },
  () => { const buffer = new ArrayBuffer(8, { maxByteLength: 1 << 16 }); structuredClone({ get a() { buffer.resize(1 << 16); return new Uint8Array(buffer); } }, { transfer: [buffer] }); },
  () => { const view = new Uint8Array(1 << 16); structuredClone([view, { get a() { take(view.buffer); return 1; } }, view]); },
  () => { const view = new Uint8Array(1 << 16); return crypto.subtle.digest({ get name() { take(view.buffer); return "SHA-256"; } }, view); },
  () => { const list = [1, 2, 3]; structuredClone([{ get a() { list.length = 0; return 1; } }, list]); },
  () => { const view = new Uint8Array(1 << 16); view.set({ length: 4, get 0() { take(view.buffer); return 1; }, 1: 2, 2: 3, 3: 4 }); },
  () => { const view = new Float64Array(1 << 12); view.fill({ valueOf() { take(view.buffer); return 1; } }); view.sort(() => { take(view.buffer); return 0; }); },
];
for (const attempt of attempts) {
  try { await attempt(); } catch {}
}
"survived";
