const loops = () => { for (;;); };
const traps = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((name) => [name, loops]));
function f() {}
f.toString = loops;
console.log(new Proxy({ a: 1 }, traps), { get b() { return loops(); } }, f, Object.create(Object.create(null)));
