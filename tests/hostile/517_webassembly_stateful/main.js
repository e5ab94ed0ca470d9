new WebAssembly.Memory({ initial: 1 });
