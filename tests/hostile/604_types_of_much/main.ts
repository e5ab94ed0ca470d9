let x: number = 0;
$STATEMENTS
x;
