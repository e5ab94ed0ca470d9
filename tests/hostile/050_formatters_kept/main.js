const kept = [];
for (;;) {
  const formatter = new Intl.DateTimeFormat("de", { dateStyle: "full" });
  formatter.format(0);
  kept.push(formatter);
}
