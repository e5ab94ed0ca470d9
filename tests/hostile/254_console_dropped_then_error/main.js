for (let i = 0; i < 1000; i++) console.log("flood");
throw new Error("after the flood");
