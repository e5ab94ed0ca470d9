const odd = ["context", "createTask", "memory", "profile", "profileEnd", "timeStamp"].filter((name) => name in console);
for (const name of Object.keys(console)) {
  if (typeof console[name] === "function" && name !== "clear") console[name]("called");
}
odd;
