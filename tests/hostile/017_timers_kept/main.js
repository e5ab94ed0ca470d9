let fired = 0;
const done = new Promise((resolve) => {
  for (let i = 0; i < $TIMERS; i++) setTimeout(() => { if (++fired === $TIMERS) resolve(); }, i % 10);
});
await done;
fired === $TIMERS ? "all" : fired;
