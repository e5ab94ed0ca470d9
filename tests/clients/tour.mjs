// The steps that every third-party client executes, over every transport.
import assert from "node:assert/strict";

const TOOLS = [
  "run_js", "get_execution", "get_execution_output", "cancel_execution", "list_executions", "get_heap_tags", "set_heap_tags",
  "delete_heap_tags", "query_heaps_by_tags", "list_sessions", "list_session_snapshots", "health_check",
];

// `client` is a connected client of one of the SDKs. Both validate structured content against the tool's schema.
export async function tour(client, { withProgress }) {
  const call = async (name, args, options) => {
    const answer = await client.callTool({ name, arguments: args }, ...options ?? []);
    if (answer.structuredContent !== undefined) assert.deepEqual(JSON.parse(answer.content[0].text), answer.structuredContent);
    return answer;
  };
  const record = async (args) => (await call("run_js", { wait_secs: 60, ...args })).structuredContent;

  const { tools } = await client.listTools();
  for (const name of TOOLS) {
    const tool = tools.find((tool) => tool.name === name);
    assert(tool?.title && tool.description && tool.outputSchema, `${name} is described`);
    assert.equal(tool.annotations.openWorldHint, false);
  }

  const first = await record({ code: "let n: number = 41; class Counter { next() { return ++n } }" });
  assert.equal(first.status, "completed", first.error);
  const second = await record({ code: "new Counter().next()", heap: first.heap });
  assert.equal(second.result, "42");
  assert.equal((await record({ code: "n", heap: first.heap })).result, "41");

  const begun = (await call("run_js", { code: "for (let i = 1; i <= 250; i++) console.log(`line ${i} é`)" })).structuredContent;
  assert.deepEqual(Object.keys(begun), ["execution_id"]);
  let text = "", line_offset = 1, page;
  do {
    page = (await call("get_execution_output", { execution_id: begun.execution_id, line_offset, wait_secs: 30 })).structuredContent;
    text += page.data;
    line_offset = page.next_line_offset;
  } while (page.has_more || page.status === "running");
  assert.equal(text, Array.from({ length: 250 }, (_, i) => `line ${i + 1} é\n`).join(""));

  const refused = await call("run_js", { code: "1", execution_timeout_secs: 301 });
  assert.equal(refused.isError, true);
  assert.match(refused.content[0].text, /execution_timeout_secs.*301.*300/);
  const thrown = await call("run_js", { code: "null.x", wait_secs: 60 });
  assert.equal(thrown.isError, true);
  assert.equal(thrown.structuredContent.status, "failed");
  assert.match(thrown.structuredContent.error, /TypeError/);
  await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), /no_such_tool/);

  const heap = second.heap, tags = { from: "tour", of: String(Math.random()) };
  assert.deepEqual((await call("set_heap_tags", { heap, tags })).structuredContent, { ok: true });
  assert.deepEqual((await call("get_heap_tags", { heap })).structuredContent, { tags });
  assert.deepEqual((await call("query_heaps_by_tags", { tags })).structuredContent, { results: [{ heap, tags }] });
  assert.deepEqual((await call("delete_heap_tags", { heap })).structuredContent, { ok: true });
  const bad = await call("get_heap_tags", { heap: "nonsense" });
  assert.equal(bad.isError, true);
  assert.equal(bad.structuredContent.ok, false);

  const endless = (await call("run_js", { code: "for (;;);" })).structuredContent;
  assert.deepEqual((await call("cancel_execution", endless)).structuredContent, { ok: true });
  assert.equal((await call("get_execution", endless)).structuredContent.status, "cancelled");
  const again = await call("cancel_execution", endless);
  assert.equal(again.isError, true);
  assert.equal(again.structuredContent.ok, false);
  const { executions } = (await call("list_executions", {})).structuredContent;
  assert(executions.some(({ execution_id, status }) => execution_id === endless.execution_id && status === "cancelled"));

  const { resources } = await client.listResources();
  assert(resources.some(({ uri }) => uri === `heapstead://executions/${second.execution_id}`));
  const read = async (path) => (await client.readResource({ uri: `heapstead://executions/${path}` })).contents[0].text;
  assert.deepEqual(JSON.parse(await read(second.execution_id)), second);
  assert.equal(await read(`${second.execution_id}/result`), "42");
  assert.equal(await read(`${begun.execution_id}/output`), text);
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 4);

  const received = [];
  const slow = "for (let i = 0; i < 3; i++) { console.log(i); await new Promise((done) => setTimeout(done, 300)) } 'done'";
  const waited = await call("run_js", { code: slow, wait_secs: 60 }, withProgress((progress) => received.push(progress.progress)));
  assert.equal(waited.structuredContent.result, '"done"');
  assert(received.length >= 2, `${received.length} notifications`);
  assert(received.every((value, i) => i === 0 || value > received[i - 1]), "progress grows");
}

// Arguments of these scripts: `stdio COMMAND…`, `http URL` or `sse URL`.
export const [kind, ...where] = process.argv.slice(2);
