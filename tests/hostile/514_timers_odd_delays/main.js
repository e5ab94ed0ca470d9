let fired = 0;
for (const delay of [NaN, -1, Infinity, 2 ** 31, "5", null, undefined, {}, -Infinity]) setTimeout(() => { fired++; }, delay);
AbortSignal.timeout(1e6);
await new Promise((resolve) => setTimeout(resolve, 50));
fired;
