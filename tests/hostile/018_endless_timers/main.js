for (;;) setTimeout(() => {}, 1e9);
