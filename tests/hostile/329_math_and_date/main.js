Math.random = () => 0;
Math.floor = Math.max = Math.min = () => NaN;
Date.now = performance.now = () => -1;
"poisoned";
