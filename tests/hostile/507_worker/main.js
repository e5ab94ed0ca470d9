new Worker("data:text/javascript,for(;;);");
