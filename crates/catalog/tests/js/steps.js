// Runs the scripts of a JSON list on standard input one after another in one new context, and prints what each gave.
const vm = require("node:vm");
const { readFileSync } = require("node:fs");

const context = vm.createContext({});
const { stringify } = JSON;
const texts = JSON.parse(readFileSync(0, "utf8")).map((script) => {
  try {
    return stringify(vm.runInContext(script, context)) ?? "null";
  } catch (error) {
    return stringify({ thrown: String(error) });
  }
});
process.stdout.write(`[${texts.join(",")}]`);
