({ then(resolve) { for (;;); } });
