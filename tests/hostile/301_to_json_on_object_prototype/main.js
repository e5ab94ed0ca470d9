Object.prototype.toJSON = () => "a lie";
Array.prototype.toJSON = () => "a lie";
String.prototype.toJSON = () => "a lie";
"poisoned";
