console.log("first");
const line = "x".repeat(1 << 20);
for (let i = 0; i < $MB; i++) console.log(line);
"all said";
