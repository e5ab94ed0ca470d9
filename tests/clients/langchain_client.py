"""The tour with LangChain's adapter (`langchain-mcp-adapters`): MCP tools as LangChain tools, resources as blobs.

Arguments: `stdio COMMAND…`, `http URL` or `sse URL`.
"""

import asyncio
import json
import os
import sys

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools

KIND, *WHERE = sys.argv[1:]
CONNECTIONS = {
    "stdio": lambda: {"transport": "stdio", "command": WHERE[0], "args": WHERE[1:], "env": dict(os.environ)},
    "http": lambda: {"transport": "streamable_http", "url": WHERE[0]},
    "sse": lambda: {"transport": "sse", "url": WHERE[0]},
}


async def tour(session):
    tools = {tool.name: tool for tool in await load_mcp_tools(session, handle_tool_errors=False)}
    assert {"run_js", "get_execution_output", "session_context", "health_check"} <= tools.keys(), tools.keys()

    async def call(name, **arguments):
        asked = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        message = await tools[name].ainvoke(asked)
        assert message.status == "success", message
        return message.artifact["structured_content"]

    async def refused(name, **arguments):
        try:
            await tools[name].ainvoke(arguments)
        except ToolException as error:
            return str(error)
        raise AssertionError(f"{name} {arguments} is refused")

    # A run continues from a heap by its key; in a session, from the session's head.
    first = await call("run_js", code="let n: number = 41", wait_secs=60)
    second = await call("run_js", code="++n", heap=first["heap"], wait_secs=60)
    assert second["result"] == "42", second
    ref = (await call("session_context", intent=f"langchain over {KIND}"))["logical_session_ref"]
    for expected in ["1", "2"]:
        record = await call("run_js", code="globalThis.count = (globalThis.count ?? 0) + 1", session=ref, wait_secs=60)
        assert record["result"] == expected, record

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
    assert (await call("health_check"))["status"] == "healthy"
    assert isinstance((await call("list_sessions"))["sessions"], list)

    uri = f"heapstead://executions/{second['execution_id']}"
    record, result = await load_mcp_resources(session, uris=[uri, uri + "/result"])
    assert json.loads(record.as_string()) == second
    assert result.as_string() == "42"


async def main():
    client = MultiServerMCPClient({"heapstead": CONNECTIONS[KIND]()})
    async with client.session("heapstead") as session:
        await tour(session)
    # By default the adapter opens a connection per call, and returns errors as messages for the model.
    tools = {tool.name: tool for tool in await client.get_tools()}
    failed = await tools["run_js"].ainvoke({"type": "tool_call", "id": "1", "name": "run_js", "args": {"code": "null.x", "wait_secs": 60}})
    assert failed.status == "error" and "TypeError" in str(failed.content), failed


asyncio.run(main())
