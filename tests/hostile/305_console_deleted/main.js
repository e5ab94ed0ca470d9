delete globalThis.console;
"poisoned";
