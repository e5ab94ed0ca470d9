interface A { a: number }
let a: A = { a: 1 };
let c: number = = 3;
