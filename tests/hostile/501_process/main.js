(() => {}).constructor.constructor("return process")();
