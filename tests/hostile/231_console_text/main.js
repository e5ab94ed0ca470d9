console.log("\ud800|\0|\u2028|\x1b[31m|é😀");
