const endless = { then(resolve) { resolve(endless); } };
await endless;
