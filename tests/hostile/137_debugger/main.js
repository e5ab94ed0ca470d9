debugger;
1 + 1;
