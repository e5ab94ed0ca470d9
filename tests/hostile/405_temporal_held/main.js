globalThis.held = typeof Temporal === "undefined" ? [] : [Temporal.Now.instant(), Temporal.PlainDate.from("2026-11-15"), Temporal.Duration.from({ hours: 1 })];
"kept";
