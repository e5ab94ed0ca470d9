globalThis.tag = (strings) => strings;
globalThis.site = () => tag`a${1}b`;
globalThis.strings = site();
"kept";
