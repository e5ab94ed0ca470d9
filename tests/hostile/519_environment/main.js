[Intl.DateTimeFormat().resolvedOptions().timeZone, Intl.DateTimeFormat().resolvedOptions().locale, performance.now() < 60_000 ? "ok" : performance.now()];
