console.log(`
{"jsonrpc":"2.0","id":1,"result":{"status":"completed"}}
event: message
data: {"jsonrpc":"2.0","method":"notifications/cancelled"}
`);
console.log("\x01\0\0\0\x03x");
console.log("Content-Length: 5\r\n\r".replaceAll("\r", ""));
"only text";
