for (let i = 0; i < 20_000; i++) {
  console.group();
  if (i % 100 === 0) console.log("deeper");
  console.count(`label ${i}`);
  console.time(`label ${i}`);
}
"grouped";
