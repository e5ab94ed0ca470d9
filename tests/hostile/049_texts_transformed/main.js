const ways = [(text) => text.normalize("NFD"), (text) => text.toLocaleUpperCase("tr"), (text) => encodeURIComponent(text), (text) => text.localeCompare(`${text}x`, "sv")];
const failures = [];
for (const way of ways) {
  try {
    way("é".repeat(2 ** 27));
  } catch (error) {
    failures.push(error.name);
  }
}
throw new RangeError(failures.join());
