// The tour with @modelcontextprotocol/sdk, the TypeScript client for versions with `initialize`, and the tasks of 2025-11-25.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { kind, tour, where } from "./tour.mjs";

const require = createRequire(`${process.env.HEAPSTEAD_TEST_PACKAGES}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
const { CallToolResultSchema } = require("@modelcontextprotocol/sdk/types.js");

const client = new Client({ name: "tour", version: "1" }, { capabilities: { tasks: {} } });
await client.connect({
  stdio: () => new StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env, stderr: "inherit" }),
  http: () => new StreamableHTTPClientTransport(new URL(where[0])),
  sse: () => new SSEClientTransport(new URL(where[0])),
}[kind]());
await tour(client, { withProgress: (onprogress) => [CallToolResultSchema, { onprogress }] });

const task = async (code) => {
  const seen = [];
  const stream = client.experimental.tasks.callToolStream({ name: "run_js", arguments: { code } }, CallToolResultSchema, { task: { ttl: 60_000 } });
  for await (const message of stream) seen.push(message);
  return seen;
};
const seen = await task("await new Promise((done) => setTimeout(done, 200)); 6 * 7");
assert.equal(seen[0].type, "taskCreated");
assert.equal(seen.at(-1).type, "result");
assert.equal(seen.at(-1).result.structuredContent.result, "42");
const { taskId } = seen[0].task;
assert.equal((await client.experimental.tasks.getTask(taskId)).status, "completed");
assert((await client.experimental.tasks.listTasks()).tasks.some((task) => task.taskId === taskId));
await assert.rejects(client.experimental.tasks.cancelTask(taskId), /is not running/);
await client.close();
