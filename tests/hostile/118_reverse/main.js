const array = [];
array.length = 2 ** 32 - 1;
array.reverse();
