// The tour with @modelcontextprotocol/client, the TypeScript client that supports 2026-07-28: in that version, and as an older client.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { kind, tour, where } from "./tour.mjs";

const require = createRequire(`${process.env.HEAPSTEAD_TEST_PACKAGES}/`);
const { Client, SSEClientTransport, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const transports = {
  stdio: () => new StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env, stderr: "inherit" }),
  http: () => new StreamableHTTPClientTransport(new URL(where[0])),
  sse: () => new SSEClientTransport(new URL(where[0])),
};
const modes = { stdio: ["legacy", { pin: "2026-07-28" }], http: ["legacy", "auto", { pin: "2026-07-28" }], sse: ["legacy"] }[kind];
for (const mode of modes) {
  const client = new Client({ name: "tour", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transports[kind]());
  assert.equal(client.getServerVersion().name, "heapstead");
  assert.match(client.getInstructions(), /run_js/);
  await tour(client, { withProgress: (onprogress) => [{ onprogress }] });
  await client.close();
}
