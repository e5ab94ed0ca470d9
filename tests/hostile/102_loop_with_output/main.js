console.log("before");
for (;;);
