Error.prepareStackTrace = (error, sites) => "nothing to see";
"poisoned";
