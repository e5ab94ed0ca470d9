const view = new Uint8Array(8);
structuredClone(view.buffer, { transfer: [view.buffer] });
[view.length, view.byteLength];
