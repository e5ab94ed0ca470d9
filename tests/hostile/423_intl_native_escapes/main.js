class Mine extends Intl.NumberFormat {}
globalThis.held = [
  Reflect.construct(Intl.NumberFormat, ["en"], class {}),
  new Mine("en"),
  Intl.DateTimeFormat.call(Object.create(Intl.DateTimeFormat.prototype)),
  new (Object.getPrototypeOf(new Intl.Collator("en")).constructor)("en"),
  [1234.5].toLocaleString("de"),
  new Date(0).toLocaleString("en", { timeZone: "UTC" }),
  "a".localeCompare("b", "sv"),
].map((item, i) => (i === 0 ? new Intl.NumberFormat("en") : item));
try {
  new Intl.NumberFormat("en", { get style() { globalThis.error = new Error("inside"); throw error; } });
} catch {}
try {
  new Intl.NumberFormat("en").format({ valueOf() { globalThis.inner = new Error("inside format"); return 1; } });
} catch {}
"held";
