const found = [];
function climb() {
  for (const get of [() => climb.caller, () => climb.arguments?.callee?.caller, () => arguments.callee.caller]) {
    try {
      const value = get();
      if (typeof value === "function" && !String(value).includes("climb")) found.push(String(value).slice(0, 100));
    } catch {}
  }
  Error.prepareStackTrace = (error, sites) => sites;
  const sites = new Error().stack;
  Error.prepareStackTrace = undefined;
  for (const site of sites) {
    const name = String(site.getFileName() ?? site.getScriptNameOrSourceURL() ?? "");
    if (name.includes("heapstead") && (site.getFunction() !== undefined || site.getThis() !== undefined)) found.push(`${name} ${site.getFunctionName()}`);
  }
  return "text";
}
const custom = { [Symbol.for("nodejs.util.inspect.custom")]: climb, toString: climb };
console.log(custom);
console.log("%s", custom);
try { new URL(custom); } catch {}
try { structuredClone(1, { get transfer() { climb(); return []; } }); } catch {}
new EventTarget().dispatchEvent(new Event({ toString: climb }));
const target = new EventTarget();
target.addEventListener("x", climb);
target.dispatchEvent(new Event("x"));
await new Promise((resolve) => setTimeout(() => { climb(); resolve(); }, 1));
await new Promise((resolve) => queueMicrotask(() => { climb(); resolve(); }));
found;
