let deep = [];
for (let i = 1; i < $DEPTH; i++) deep = [deep];
deep;
