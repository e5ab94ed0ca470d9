let globalThis = { console: "a lie" };
"poisoned";
