const end = "\x05\0\0\0\x11\x01\0\0\0\0\0\0\0\0'no'";
console.log(end.repeat(3));
throw new Error(end.repeat(1000) + "\x07\0\0\0\x14\0\0\0\0\0\0\0\0refused");
