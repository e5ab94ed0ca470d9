JSON.parse("[".repeat($DEPTH));
