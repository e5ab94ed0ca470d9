new Array(60 << 20).fill();
