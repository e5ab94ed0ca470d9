const object = {};
for (let i = 0; ; i++) {
  object[`property ${i}`] = i;
  globalThis[`global ${i}`] = i;
}
