var leaked = 0;
if (!globalThis.poisoned) {
  const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames } = Object;
  const found = [];
  for (const target of [String.prototype, Array.prototype, Map.prototype, Object.prototype]) {
    for (const name of getOwnPropertyNames(target)) {
      const { value, configurable } = getOwnPropertyDescriptor(target, name);
      if (typeof value === "function" && name !== "constructor" && configurable && name[0] !== "_") found.push([target, name]);
    }
  }
  const keys = ["name", "value", "0", "1", "2", "values", "search", "href", "get", "set", "done"];
  const poison = () => { throw new Error("poison"); };
  globalThis.poisoned = true;
  for (let i = 0; i < found.length; i++) defineProperty(found[i][0], found[i][1], { __proto__: null, configurable: true, writable: true, value: poison });
  defineProperty(Array.prototype, Symbol.iterator, { __proto__: null, configurable: true, writable: true, value: poison });
  for (let i = 0; i < keys.length; i++) {
    const trap = { __proto__: null, configurable: true, get() {}, set() { leaked++; } };
    defineProperty(Object.prototype, keys[i], trap);
    defineProperty(Array.prototype, keys[i], trap);
  }
}
let url = new URL("../x?a=1&b=2#h", "https://user:pw@bücher.example:8443/b/c"), { searchParams } = url;
searchParams.append("c", "d e");
searchParams.delete("a");
searchParams.sort();
searchParams.set("z", 1);
url.host = "other:99";
let text = "", decoder = new TextDecoder("shift_jis"), refused;
searchParams.forEach((value, name) => { text += name + value; });
text += decoder.decode(new Uint8Array(1).fill(0x82), { stream: true }) + decoder.decode(new Uint8Array(1).fill(0xa0));
try {
  structuredClone(url);
} catch (error) {
  refused = error.name;
}
console.log(url.href, url.origin, searchParams.size, searchParams.get("c"), searchParams.has("b", "2"), URL.canParse("x"), URL.parse("http://q/").host, text, refused, mcp.headers.nothing);
leaked;
