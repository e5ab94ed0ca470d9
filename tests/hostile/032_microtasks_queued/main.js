const task = () => {};
for (;;) queueMicrotask(task);
