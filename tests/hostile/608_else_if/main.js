globalThis.x = 0;
$CHAIN x = 3;
x - 3;
