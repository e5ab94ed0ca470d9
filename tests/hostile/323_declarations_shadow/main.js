let Promise = 1;
let Object = 2;
let Error = 3;
let JSON = 4;
let Symbol = 5;
let console_ = 6;
class Map {}
function Array() {}
"poisoned";
