// Runs the cases of cases.json with the TypeScript client (@modelcontextprotocol/client, found in HEAPSTEAD_TEST_PACKAGES or beside this file).
//
// run.mjs [--server normal|stateless|require-session] [--change JSON] [--head URI] stdio COMMAND… | http URL
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";

const packages = process.env.HEAPSTEAD_TEST_PACKAGES;
const require = createRequire(packages ? `${packages}/` : import.meta.url);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const TIMEOUT_MS = 30_000;
const ERAS = {
  legacy: { mode: "legacy", $key: "io.modelcontextprotocol/session", $notFound: -32043, $required: -32044 },
  modern: { mode: { pin: "2026-07-28" }, $key: "dev.heapstead/session", $notFound: -31043, $required: -31044 },
};
// Arguments after the transport are for the server.
const own = process.argv.slice(2);
const at = own.findIndex((argument) => argument === "stdio" || argument === "http");
const { values: options } = parseArgs({
  args: own.slice(0, at),
  options: {
    server: { type: "string", default: "normal" },
    change: { type: "string", default: '{"name": "run_js", "arguments": {"code": "1", "wait_secs": 60}}' },
    head: { type: "string", default: "heapstead://sessions/{sessionId}/head" },
  },
});
const [kind, ...where] = own.slice(at);
// Any result is accepted here: the cases define what it must contain.
const anything = { "~standard": { version: 1, vendor: "cases", validate: (value) => ({ value }) } };

const within = (promise, what) =>
  Promise.race([promise, new Promise((_, fail) => setTimeout(() => fail(new Error(`${what}: timeout`)), TIMEOUT_MS).unref())]);

// One case with one client.
class Run {
  saved = {};
  listening = {};
  unread = [];
  waiting = () => {};

  constructor(era) {
    this.era = ERAS[era];
  }

  async connect() {
    this.client = new Client({ name: "cases", version: "1" }, { versionNegotiation: { mode: this.era.mode } });
    const transport =
      kind === "stdio"
        ? new StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env, stderr: "inherit" })
        : new StreamableHTTPClientTransport(new URL(where[0]));
    // Every message is recorded before the client reads it. The client sets its own reader when it connects.
    let reader;
    Object.defineProperty(transport, "onmessage", {
      get: () => reader && ((message, extra) => (this.record(message), reader(message, extra))),
      set: (given) => (reader = given),
    });
    await this.client.connect(transport);
  }

  record(message) {
    this.unread.push({ ...message, params: message.params ?? {} });
    this.waiting();
  }

  // Replaces placeholders with their values.
  value(written) {
    if (Array.isArray(written)) return written.map((item) => this.value(item));
    if (written && typeof written === "object")
      return Object.fromEntries(Object.entries(written).map(([key, item]) => [this.era[key] ?? key, this.value(item)]));
    if (typeof written !== "string") return written;
    if (written === "$long") return "x".repeat(5000);
    if (written === "$head") return options.head.replace("{sessionId}", this.saved.made.session.sessionId);
    if (written.startsWith("=")) return this.lookUp(written.slice(1));
    if (written.startsWith("<")) return this.lookUp(written.slice(1)).slice(0, -2);
    return this.era[written] ?? written;
  }

  lookUp(path) {
    return path.split(".").reduce((found, part) => found[part === "$key" ? this.era.$key : part], this.saved);
  }

  check(expected, found, path) {
    const must = (holds, what) => {
      if (!holds) throw new Error(`${path}: ${what}, not ${JSON.stringify(found)}`);
    };
    if (Array.isArray(expected)) {
      // At least one must match.
      for (const item of expected) must(found?.some((one) => this.fits(item, one)), `something like ${JSON.stringify(item)}`);
    } else if (expected && typeof expected === "object") {
      must(found && typeof found === "object", "an object");
      for (const [key, item] of Object.entries(expected)) this.check(item, found[this.era[key] ?? key], `${path}.${this.era[key] ?? key}`);
    } else if (expected === "$absent") must(found === undefined, "absent");
    else if (expected === "$any") must(found !== undefined, "anything");
    else if (expected === "$id") must(/^[\x21-\x7e]+$/.test(found), "visible ASCII");
    else if (expected === "$state") must(typeof found === "string" && found && Buffer.byteLength(found) <= 4096, "a text of at most 4 KiB");
    else if (expected === "$time") must(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(found), "a time");
    else if (typeof expected === "string" && expected.startsWith("!"))
      must(found !== undefined && found !== this.lookUp(expected.slice(1)), "another value than before");
    else must(found === this.value(expected), JSON.stringify(this.value(expected)));
  }

  fits(expected, found) {
    try {
      this.check(expected, found, "");
      return true;
    } catch {
      return false;
    }
  }

  // The answer, in the shape of JSON-RPC.
  async send(method, params) {
    try {
      const result = await this.client.request({ method, params }, anything, { timeout: TIMEOUT_MS * 4 });
      // In the later era the client takes the type off its results. Nothing else is asked there meanwhile, so the last answer is this one.
      return { result: this.era === ERAS.modern ? this.unread.findLast((message) => message.result).result : result };
    } catch (error) {
      // With an HTTP status of its own the client does not read an answer, and only shows it.
      const shown = /\{"jsonrpc".*\}$/.exec(error.message);
      if (shown) return JSON.parse(shown[0]);
      if (typeof error.code !== "number") throw error;
      return { error: { code: error.code, message: error.message.replace(/^MCP error -?\d+: /, ""), data: error.data } };
    }
  }

  inSession(step, params) {
    return "in" in step ? { ...params, _meta: { ...params._meta, [this.era.$key]: this.value(step.in) } } : params;
  }

  async receive(wanted) {
    for (;;) {
      const index = this.unread.findIndex((message) => this.fits(wanted, message));
      if (index >= 0) return this.unread.splice(index, 1)[0];
      await within(new Promise((woken) => (this.waiting = woken)), JSON.stringify(wanted));
    }
  }

  async post(step) {
    const headers = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2025-11-25",
      "mcp-session-id": this.value(step.header),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: step.post, params: this.inSession(step, {}) });
    const response = await fetch(where[0], { method: "POST", headers, body });
    if (response.status !== step.status) throw new Error(`status ${response.status}: ${await response.text()}`);
  }

  async step(step) {
    if (step.capabilities) {
      // The client keeps only capabilities that it knows, so this reads the server's message.
      const response =
        this.era === ERAS.modern ? await this.send("server/discover", {}) : await this.receive({ result: { capabilities: "$any" } });
      return this.check(step.capabilities, response.result.capabilities, "capabilities");
    }
    if (step.receive) return this.receive({ method: step.receive, params: step.params });
    if (step.post) return this.post(step);
    if (step.listen) {
      this.listening[step.listen] = this.send("messages/listen", this.inSession(step, {}));
      return undefined;
    }
    let answer;
    if (step.answered) answer = await within(this.listening[step.answered], "the answer");
    else if (step.change) answer = await this.send("tools/call", this.inSession(step, JSON.parse(options.change)));
    else answer = await this.send(step.ask, this.inSession(step, this.value(step.params)));
    const kind = "error" in step ? "error" : "result";
    if (!(kind in answer)) throw new Error(`expected ${kind}, got ${JSON.stringify(answer)}`);
    this.check(step[kind] ?? {}, answer[kind], kind);
    if (step.save) this.saved[step.save] = answer.result;
    return undefined;
  }
}

const cases = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8"));
let [ran, failed] = [0, 0];
for (const { rule, server = "normal", transports = ["stdio", "http"], eras = Object.keys(ERAS), steps } of cases) {
  if (server !== options.server || !transports.includes(kind)) continue;
  for (const era of eras) {
    ran++;
    const run = new Run(era);
    try {
      await run.connect();
      for (const [index, step] of steps.entries()) {
        if (step.eras && !step.eras.includes(era)) continue;
        try {
          await run.step(step);
        } catch (error) {
          throw new Error(`step ${index + 1}, ${JSON.stringify(step)}: ${error.message}`);
        }
      }
      console.log(`ok    ${era} ${rule}`);
    } catch (error) {
      failed++;
      console.log(`FAIL  ${era} ${rule}\n      ${error.message}`);
    }
    await run.client.close();
  }
}
console.log(`${ran - failed} of ${ran} hold`);
process.exit(failed > 0 || ran === 0 ? 1 : 0);
