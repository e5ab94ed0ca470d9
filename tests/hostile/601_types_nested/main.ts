let deep: $OPENstring$CLOSE = 1 as any;
1;
