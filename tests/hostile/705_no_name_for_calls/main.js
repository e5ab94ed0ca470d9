// Nothing in a heap can send a message to the server, under whatever name it might look for one.
const names = ["call", "reply", "commit", "snapshot", "send", "channel", "heapstead", "Heapstead", "capability", "capabilities", "__call", "postMessage"];
const found = names.filter((name) => name in globalThis);
const inMcp = typeof mcp === "object" ? Object.keys(mcp).filter((name) => name !== "headers") : [];
[...found, ...inMcp];
