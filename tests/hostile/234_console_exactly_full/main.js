console.log("x".repeat((1 << 20) - "\nxyz\n".length));
console.log("xyz");
"fits";
