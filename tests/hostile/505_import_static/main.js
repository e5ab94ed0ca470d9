import fs from "fs";
fs.readFileSync("/etc/passwd");
