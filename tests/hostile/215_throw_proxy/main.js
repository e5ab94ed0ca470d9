const loops = () => { for (;;); };
const traps = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((name) => [name, loops]));
throw new Proxy(new Error("inside"), traps);
