"""The tour with FastMCP's client (`fastmcp`), which generates Python types from the output schemas and validates every response.

Arguments: `stdio COMMAND…`, `http URL` or `sse URL`.
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError

KIND, *WHERE = sys.argv[1:]
TRANSPORTS = {
    "stdio": lambda: StdioTransport(command=WHERE[0], args=WHERE[1:], env=dict(os.environ), keep_alive=False),
    "http": lambda: StreamableHttpTransport(WHERE[0]),
    "sse": lambda: SSETransport(WHERE[0]),
}
# In auto mode it uses 2026-07-28 if the transport supports it.
MODES = {"stdio": ["legacy", "auto"], "http": ["legacy", "auto"], "sse": ["legacy"]}


async def tour(client):
    async def call(name, **arguments):
        return (await client.call_tool(name, arguments)).structured_content

    async def refused(name, **arguments):
        try:
            await client.call_tool(name, arguments)
        except ToolError as error:
            return str(error)
        raise AssertionError(f"{name} {arguments} is refused")

    tools = {tool.name: tool for tool in await client.list_tools()}
    assert {"run_js", "get_execution_output", "session_context", "health_check"} <= tools.keys(), tools.keys()

    # A run continues from a heap by its key; in a session, from the session's head.
    first = await call("run_js", code="let n: number = 41", wait_secs=60)
    second = await call("run_js", code="++n", heap=first["heap"], wait_secs=60)
    assert second["result"] == "42", second
    session = (await call("session_context", intent=f"fastmcp over {KIND} as {client.protocol_version}"))["logical_session_id"]
    for expected in ["1", "2"]:
        record = await call("run_js", code="globalThis.count = (globalThis.count ?? 0) + 1", session=session, wait_secs=60)
        assert record["result"] == expected, record

    # The response as the type that its schema describes.
    typed = (await client.call_tool("run_js", {"code": "[1, 2]", "wait_secs": 60})).data
    assert typed.status == "completed" and typed.result == "[1,2]", typed

    begun = await call("run_js", code="for (let i = 1; i <= 250; i++) console.log(`line ${i} é`)")
    text, offset = "", 1
    while True:
        page = await call("get_execution_output", **begun, line_offset=offset, wait_secs=30)
        text, offset = text + page["data"], page["next_line_offset"]
        if not page["has_more"] and page["status"] != "running":
            break
    assert text == "".join(f"line {i} é\n" for i in range(1, 251)), text

    assert "execution_timeout_secs" in await refused("run_js", code="1", execution_timeout_secs=301)
    assert "`colour` is not a parameter" in await refused("run_js", code="1", colour="red")
    assert "TypeError" in await refused("run_js", code="null.x", wait_secs=60)
    failed = await client.call_tool("run_js", {"code": "null.x", "wait_secs": 60}, raise_on_error=False)
    assert failed.is_error and failed.structured_content["status"] == "failed", failed

    uri = f"heapstead://executions/{second['execution_id']}"
    assert uri in [str(resource.uri) for resource in await client.list_resources()]
    assert json.loads((await client.read_resource(uri))[0].text) == second
    assert (await client.read_resource(uri + "/result"))[0].text == "42"
    assert len(await client.list_resource_templates()) == 4

    received = []

    async def progress(value, total, message):
        received.append(value)

    slow = "for (let i = 0; i < 3; i++) { console.log(i); await new Promise((done) => setTimeout(done, 300)) }"
    await client.call_tool("run_js", {"code": slow, "wait_secs": 60}, progress_handler=progress)
    assert len(received) >= 2 and received == sorted(set(received)), received


async def main():
    for mode in MODES[KIND]:
        async with Client(TRANSPORTS[KIND](), mode=mode) as client:
            assert client.server_info.name == "heapstead"
            assert (client.protocol_version == "2026-07-28") == (mode == "auto"), client.protocol_version
            await tour(client)


asyncio.run(main())
