const array = [];
array.length = 2 ** 32 - 1;
array[4_000_000_000] = 1;
array[5] = 2;
array.sort();
