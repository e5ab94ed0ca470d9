let x: number = 1;
(x$CASTS) as number;
