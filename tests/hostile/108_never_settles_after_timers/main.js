setTimeout(() => console.log("fired"), 20);
await new Promise(() => {});
