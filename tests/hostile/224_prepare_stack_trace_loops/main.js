Error.prepareStackTrace = () => { for (;;); };
"poisoned";
