// A proxy between the conformance suite and the server. The suite calls tools and reads resources that it defines itself: the proxy replaces them
// with equivalent `run_js` calls and with resources of executions. Only requests are changed, not responses.
// Argument: the URL of the server. Prints its own URL, and serves until its standard input ends.
import { createServer } from "node:http";

const [target] = process.argv.slice(2);
const sleep = (secs) => `await new Promise((done) => setTimeout(done, ${Number(secs) * 1000}));`;
const tools = {
  greet: ({ name }) => ({ code: JSON.stringify(`Hello, ${name}!`), wait_secs: 10 }),
  slow_compute: ({ seconds = 1 }) => ({ code: `${sleep(seconds)} 42` }),
  confirm_delete: ({ filename }) => ({ code: JSON.stringify(`${filename} is not deleted`), wait_secs: 10 }),
  test_simple_text: () => ({ code: '"This is a simple text response for testing."', wait_secs: 10 }),
  test_error_handling: () => ({ code: 'throw new Error("This tool intentionally returns an error for testing")', wait_secs: 10 }),
  test_tool_with_progress: () => ({ code: `for (let i = 0; i < 4; i++) { console.log(i); ${sleep(0.3)} }`, wait_secs: 10 }),
  test_logging_tool: () => ({ code: 'console.log("started"); console.error("ended")', wait_secs: 10 }),
  test_streaming_elicitation: () => ({ code: `for (let i = 0; i < 3; i++) { console.log(i); ${sleep(0.1)} }`, wait_secs: 10 }),
  failing_job: () => ({ code: `${sleep(0.2)} throw new Error("this job fails")` }),
};
// The code of an execution, and which of its resources is the replacement.
const resources = [
  [/^test:\/\/static-text$/, () => ({ code: '"This is the content of the static text resource."', part: "/result" })],
  [/^test:\/\/template\/([^/]+)\/data$/, (id) => ({ code: `({ id: ${JSON.stringify(id)}, templateTest: true })`, part: "/result" })],
  [/^test:\/\/watched-resource$/, () => ({ code: `${sleep(1)} 1`, part: "" })],
];

// An execution for each resource, started when it is first requested.
const made = new Map();
async function make({ code, part }) {
  const answer = await fetch(new URL("/api/exec", target), {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code, wait_secs: 10 }),
  });
  return `heapstead://executions/${(await answer.json()).execution_id}${part}`;
}
function resource(uri) {
  for (const [pattern, source] of resources) {
    const match = pattern.exec(uri);
    if (match && !made.has(uri)) made.set(uri, make(source(...match.slice(1))));
  }
  return made.get(uri);
}

// Replaces the name in a message, in its body and in the header that repeats it.
async function translate({ method, params }, headers) {
  const rename = (member, name) => {
    if (headers.get("mcp-name") === params[member]) headers.set("mcp-name", name);
    params[member] = name;
  };
  if (method === "tools/call" && tools[params?.name]) {
    params.arguments = tools[params.name](params.arguments ?? {});
    rename("name", "run_js");
  } else if (method?.startsWith("resources/") && (await resource(params?.uri))) {
    rename("uri", await resource(params.uri));
  }
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  let body = Buffer.concat(chunks);
  const headers = new Headers(Object.entries(request.headers).filter(([name]) => !["host", "connection", "content-length"].includes(name)));
  try {
    const message = JSON.parse(body);
    await translate(message, headers);
    body = JSON.stringify(message);
  } catch {
    // A body that is not JSON is passed on unchanged.
  }
  const disconnected = new AbortController();
  response.on("close", () => disconnected.abort());
  try {
    const has_body = !["GET", "HEAD"].includes(request.method);
    const answer = await fetch(target, { method: request.method, headers, body: has_body ? body : undefined, signal: disconnected.signal });
    response.writeHead(answer.status, Object.fromEntries([...answer.headers].filter(([name]) => name !== "transfer-encoding")));
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  } catch (error) {
    // The client has disconnected, or the server has exited.
    if (!disconnected.signal.aborted) response.destroy(error);
  }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
process.stdin.on("end", () => process.exit()).resume();
