for (let i = 0; i < 255; i++) console.log("abc");
console.log("xyz");
"fits";
