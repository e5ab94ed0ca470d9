setInterval(() => {}, 1);
"the value is there, the loop is not empty";
