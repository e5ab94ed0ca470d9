"""The tools as OpenAI's Agents SDK (`openai-agents`) offers them to a model, with schemas converted to its strict mode.

Strict mode does not support free-form maps: the SDK offers tools with a map parameter with their original schema. All other tools must be strict.
Arguments: `stdio COMMAND…` or `http URL`.
"""

import asyncio
import json
import os
import sys

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.strict_schema import ensure_strict_json_schema
from agents.tool_context import ToolContext

KIND, *WHERE = sys.argv[1:]
SERVERS = {
    "stdio": lambda: MCPServerStdio({"command": WHERE[0], "args": WHERE[1:], "env": dict(os.environ)}, client_session_timeout_seconds=60),
    "http": lambda: MCPServerStreamableHttp({"url": WHERE[0], "timeout": 60}, client_session_timeout_seconds=60),
}
# `tags` of the first five, `custom` of the last.
WITH_MAPS = {"run_js", "plasm", "plasm_run", "set_heap_tags", "query_heaps_by_tags", "context_set"}


async def main():
    async with SERVERS[KIND]() as server:
        agent = Agent(name="tour", mcp_servers=[server])
        context = RunContextWrapper(context=None)
        tools = await MCPUtil.get_function_tools(server, True, context, agent)
        listed = {tool.name: tool for tool in await server.list_tools()}
        assert {tool.name for tool in tools} == set(listed) and WITH_MAPS <= set(listed), listed.keys()
        assert {tool.name for tool in tools if not tool.strict_json_schema} == WITH_MAPS

        for tool in tools:
            schema = listed[tool.name].input_schema
            if tool.name in WITH_MAPS:
                assert tool.params_json_schema == schema, tool.name
                for name in ["tags", "custom"]:
                    schema["properties"].pop(name, None)
            strict = ensure_strict_json_schema(schema, _reject_open_objects=True)
            assert strict["additionalProperties"] is False and strict["required"] == list(strict["properties"]), tool.name

        async def call(name, **arguments):
            tool = next(tool for tool in tools if tool.name == name)
            arguments = json.dumps(arguments)
            call_context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=arguments)
            return str(await tool.on_invoke_tool(call_context, arguments))

        # In strict mode a model must pass every argument: null means omitted.
        ran = await call("run_js", code="6 * 7", wait_secs=60, heap=None, tags=None, session=None)
        assert "42" in ran, ran
        assert "healthy" in await call("health_check")
        assert "sessions" in await call("list_sessions")
        assert "is not a parameter" in await call("run_js", code="1", colour="red")


asyncio.run(main())
