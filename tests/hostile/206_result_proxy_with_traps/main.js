const loops = () => { for (;;); };
const traps = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((name) => [name, loops]));
new Proxy({ a: 1 }, traps);
