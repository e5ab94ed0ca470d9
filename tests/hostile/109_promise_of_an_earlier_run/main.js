if (globalThis.earlier) await earlier;
globalThis.earlier = new Promise((resolve) => { clearTimeout(setTimeout(resolve, 1000)); });
"begun";
