for (let i = 0; i < 1000; i++) console.log("flood".repeat(1000));
throw new Error("after the flood");
