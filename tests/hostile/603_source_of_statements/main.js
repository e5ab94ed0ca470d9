globalThis.x = 0;
$STATEMENTS
x;
