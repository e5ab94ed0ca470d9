return 5;
