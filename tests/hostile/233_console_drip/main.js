console.log("f".repeat($FIRST));
for (let i = 0; i < $LOGS; i++) console.log("x");
"all said";
