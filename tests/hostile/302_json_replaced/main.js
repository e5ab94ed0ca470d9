JSON.stringify = () => "a lie";
JSON.parse = () => "a lie";
"poisoned";
