globalThis.held = mcp.headers;
globalThis.read = () => held["x-mcp-secret"];
globalThis.seen = typeof read();
"kept";
