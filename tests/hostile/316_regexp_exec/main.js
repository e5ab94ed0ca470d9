RegExp.prototype.exec = () => null;
for (const name of ["match", "replace", "search", "split", "matchAll"]) RegExp.prototype[Symbol[name]] = () => "a lie";
"poisoned";
