const outcomes = [];
const settle = async (thenable) => {
  try {
    outcomes.push(String(await thenable));
  } catch (error) {
    outcomes.push(error.message);
  }
};
await settle({ then() { throw new Error("threw in then"); } });
await settle({ get then() { throw new Error("threw in getter"); } });
await settle({ then(resolve, reject) { resolve("first"); resolve("second"); reject(new Error("third")); throw new Error("fourth"); } });
await settle({ then(resolve) { resolve({ then(again) { again("first"); } }); } });
await settle({ then(resolve) { setTimeout(resolve, 5); } });
await settle({ then: 5, toString: () => "not a function" });
outcomes;
