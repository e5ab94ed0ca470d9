"""The tour with the Python client (`mcp`), which supports 2026-07-28 and all earlier versions.

Arguments: `stdio COMMAND…`, `http URL` or `sse URL`.
"""

import asyncio
import json
import os
import random
import sys

from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

KIND, *WHERE = sys.argv[1:]
TRANSPORTS = {
    "stdio": lambda: stdio_client(StdioServerParameters(command=WHERE[0], args=WHERE[1:], env=dict(os.environ))),
    "http": lambda: streamable_http_client(WHERE[0]),
    "sse": lambda: sse_client(WHERE[0]),
}
MODES = {"stdio": ["legacy", "2026-07-28"], "http": ["legacy", "auto", "2026-07-28"], "sse": ["legacy"]}


async def tour(client):
    async def call(name, **arguments):
        answer = await client.call_tool(name, arguments)
        if answer.structured_content is not None:
            assert json.loads(answer.content[0].text) == answer.structured_content
        return answer

    async def record(**arguments):
        return (await call("run_js", wait_secs=60, **arguments)).structured_content

    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert len(tools) >= 12, tools.keys()
    assert all(tool.title and tool.description and tool.output_schema for tool in tools.values())

    first = await record(code="let n: number = 41")
    second = await record(code="++n", heap=first["heap"])
    assert second["result"] == "42", second

    begun = (await call("run_js", code="for (let i = 1; i <= 250; i++) console.log(`line ${i} é`)")).structured_content
    text, offset = "", 1
    while True:
        page = (await call("get_execution_output", **begun, line_offset=offset, wait_secs=30)).structured_content
        text, offset = text + page["data"], page["next_line_offset"]
        if not page["has_more"] and page["status"] != "running":
            break
    assert text == "".join(f"line {i} é\n" for i in range(1, 251)), text

    # Larger than this client accepts in one event: truncated in the response, and the rest is read as a resource.
    long = await client.call_tool("run_js", {"code": "'é'.repeat(1_500_000)", "wait_secs": 60})
    part = long.structured_content
    assert part["truncated"] and json.loads(long.content[0].text)["truncated"], part.keys()
    text, uri = "", f"heapstead://executions/{part['execution_id']}/result"
    while uri:
        contents = (await client.read_resource(uri)).contents[0]
        text, uri = text + contents.text, (contents.meta or {}).get("heapstead/next")
    assert text == '"' + "é" * 1_500_000 + '"'

    refused = await call("run_js", code="1", execution_timeout_secs=301)
    assert refused.is_error and "execution_timeout_secs" in refused.content[0].text
    thrown = await call("run_js", code="null.x", wait_secs=60)
    assert thrown.is_error and thrown.structured_content["status"] == "failed"
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("an unknown tool is refused")
    except MCPError as error:
        assert "no_such_tool" in str(error)

    heap, tags = second["heap"], {"from": "tour", "of": str(random.random())}
    assert (await call("set_heap_tags", heap=heap, tags=tags)).structured_content == {"ok": True}
    assert (await call("query_heaps_by_tags", tags=tags)).structured_content == {"results": [{"heap": heap, "tags": tags}]}
    assert (await call("delete_heap_tags", heap=heap, keys="of")).structured_content == {"ok": True}
    assert (await call("get_heap_tags", heap=heap)).structured_content == {"tags": {"from": "tour"}}

    endless = (await call("run_js", code="for (;;);")).structured_content
    assert (await call("cancel_execution", **endless)).structured_content == {"ok": True}
    assert (await call("cancel_execution", **endless)).is_error
    assert (await call("get_execution", **endless)).structured_content["status"] == "cancelled"

    listed = await client.list_resources()
    uri = f"heapstead://executions/{second['execution_id']}"
    assert uri in [str(resource.uri) for resource in listed.resources]
    assert json.loads((await client.read_resource(uri)).contents[0].text) == second
    assert (await client.read_resource(uri + "/result")).contents[0].text == "42"

    received = []

    async def progress(value, total, message):
        received.append(value)

    slow = "for (let i = 0; i < 3; i++) { console.log(i); await new Promise((done) => setTimeout(done, 300)) }"
    await client.call_tool("run_js", {"code": slow, "wait_secs": 60}, progress_callback=progress)
    assert len(received) >= 2 and received == sorted(set(received)), received


async def main():
    for mode in MODES[KIND]:
        async with Client(TRANSPORTS[KIND](), mode=mode) as client:
            await tour(client)


asyncio.run(main())
