globalThis.promise = new Promise(() => {});
"saved";
