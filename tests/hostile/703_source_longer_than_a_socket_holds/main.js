/* $PADDING */
globalThis.count = (globalThis.count ?? 0) + 1;
"done";
