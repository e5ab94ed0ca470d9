// Runs a JSON list of scripts from standard input in order in one new V8 context, and prints the result of each.
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
