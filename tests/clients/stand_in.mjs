// Lets the conformance suite test tasks on this server: the tools that its scenarios call are stood in for by `run_js` with code that does the same.
// Argument: the URL of the server. Prints its own, and serves until its standard input ends.
import { createServer } from "node:http";

const [target] = process.argv.slice(2);
const sleep = (secs) => `await new Promise((done) => setTimeout(done, ${Number(secs) * 1000}));`;
const stands_in = {
  greet: ({ name }) => ({ code: JSON.stringify(`Hello, ${name}!`), wait_secs: 10 }),
  slow_compute: ({ seconds = 1 }) => ({ code: `${sleep(seconds)} 42` }),
  test_simple_text: () => ({ code: '"This is a simple text response for testing."', wait_secs: 10 }),
  test_error_handling: () => ({ code: 'throw new Error("This tool intentionally returns an error for testing")', wait_secs: 10 }),
  test_tool_with_progress: () => ({ code: `for (let i = 0; i < 4; i++) { console.log(i); ${sleep(0.3)} }`, wait_secs: 10 }),
  failing_job: () => ({ code: `${sleep(0.2)} throw new Error("this job fails")` }),
};

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  let body = Buffer.concat(chunks);
  const headers = new Headers(Object.entries(request.headers).filter(([name]) => !["host", "connection", "content-length"].includes(name)));
  try {
    const message = JSON.parse(body);
    const stand_in = message.method === "tools/call" && stands_in[message.params?.name];
    if (stand_in) {
      if (headers.get("mcp-name") === message.params.name) headers.set("mcp-name", "run_js");
      message.params.name = "run_js";
      message.params.arguments = stand_in(message.params.arguments ?? {});
      body = JSON.stringify(message);
    }
  } catch {
    // What is not JSON goes through as it is.
  }
  const has_body = !["GET", "HEAD"].includes(request.method);
  const answer = await fetch(target, { method: request.method, headers, body: has_body ? body : undefined });
  response.writeHead(answer.status, Object.fromEntries([...answer.headers].filter(([name]) => name !== "transfer-encoding")));
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
process.stdin.on("end", () => process.exit()).resume();
