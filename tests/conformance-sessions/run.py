"""Runs the cases of cases.json with the Python client (`mcp`).

run.py [--server normal|stateless|require-session] [--change JSON] [--head URI] stdio COMMAND… | http URL
"""

import argparse
import asyncio
import json
import os
import pathlib
import re
import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import Request
from pydantic import TypeAdapter

TIMEOUT_SECS = 30
ERAS = {
    "legacy": {"mode": "legacy", "$key": "io.modelcontextprotocol/session", "$notFound": -32043, "$required": -32044},
    "modern": {"mode": "2026-07-28", "$key": "dev.heapstead/session", "$notFound": -31043, "$required": -31044},
}
ABSENT = object()

parser = argparse.ArgumentParser()
parser.add_argument("--server", default="normal")
parser.add_argument("--change", default='{"name": "run_js", "arguments": {"code": "1", "wait_secs": 60}}')
parser.add_argument("--head", default="heapstead://sessions/{sessionId}/head")
parser.add_argument("transport", choices=["stdio", "http"])
parser.add_argument("where", nargs=argparse.REMAINDER)
OPTIONS = parser.parse_args()


@asynccontextmanager
async def recorded(transport, received):
    """A transport that records every message before the client reads it."""
    async with transport as streams:
        read, write, *rest = streams
        out, shown = anyio.create_memory_object_stream(1000)

        async def pass_on():
            async with out:
                async for message in read:
                    if isinstance(message, SessionMessage):
                        await received.put(message.message.model_dump(by_alias=True, exclude_unset=True))
                    await out.send(message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on)
            yield (shown, write, *rest)
            tasks.cancel_scope.cancel()


class Run:
    """One case with one client."""

    def __init__(self, client, era, received):
        self.client, self.era, self.received = client, ERAS[era], received
        self.saved, self.listening, self.unread = {}, {}, []

    def value(self, written):
        """Replaces placeholders with their values."""
        if isinstance(written, dict):
            return {self.era.get(key, key): self.value(item) for key, item in written.items()}
        if isinstance(written, list):
            return [self.value(item) for item in written]
        if not isinstance(written, str):
            return written
        if written == "$long":
            return "x" * 5000
        if written == "$head":
            return OPTIONS.head.format(**self.saved["made"]["session"])
        if written[:1] == "=":
            return self.look_up(written[1:])
        if written[:1] == "<":
            return self.look_up(written[1:])[:-2]
        return self.era.get(written, written)

    def look_up(self, path):
        found = self.saved
        for part in path.split("."):
            # The key itself has dots.
            found = found[self.era["$key"] if part == "$key" else part]
        return found

    def check(self, expected, found, path):
        def wrong(why):
            raise AssertionError(f"{path}: {why}, not {json.dumps(found) if found is not ABSENT else 'absent'}")

        if isinstance(expected, dict):
            if not isinstance(found, dict):
                wrong("an object")
            for key, item in expected.items():
                key = self.era.get(key, key)
                self.check(item, found.get(key, ABSENT), f"{path}.{key}")
        elif isinstance(expected, list):
            # At least one must match.
            for item in expected:
                if not any(self.fits(item, one) for one in found):
                    wrong(f"something like {item}")
        elif expected == "$absent":
            found is ABSENT or wrong("absent")
        elif found is ABSENT:
            wrong(f"{expected}")
        elif expected == "$any":
            pass
        elif expected == "$id":
            re.fullmatch(r"[\x21-\x7e]+", found) or wrong("visible ASCII")
        elif expected == "$state":
            isinstance(found, str) and 0 < len(found.encode()) <= 4096 or wrong("a text of at most 4 KiB")
        elif expected == "$time":
            re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", found) or wrong("a time")
        elif isinstance(expected, str) and expected[:1] == "!":
            found != self.look_up(expected[1:]) or wrong("another value than before")
        elif self.value(expected) != found:
            wrong(f"{self.value(expected)!r}")

    def fits(self, expected, found):
        try:
            self.check(expected, found, "")
            return True
        except AssertionError:
            return False

    async def send(self, method, params):
        """The response, in the form of JSON-RPC."""
        try:
            request = Request[dict, str](method=method, params=params)
            return {"result": await self.client.session.send_request(request, TypeAdapter(dict))}
        except MCPError as error:
            return {"error": error.error.model_dump(by_alias=True, exclude_none=True)}

    def in_session(self, step, params):
        if "in" in step:
            params = {**params, "_meta": {**params.get("_meta", {}), self.era["$key"]: self.value(step["in"])}}
        return params

    async def receive(self, step):
        wanted = {"method": step["receive"], "params": step["params"]}
        while True:
            for message in self.unread:
                if self.fits(wanted, message):
                    return self.unread.remove(message)
            message = await asyncio.wait_for(self.received.get(), TIMEOUT_SECS)
            message.setdefault("params", {})
            self.unread.append(message)

    async def post(self, step):
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25", "mcp-session-id": self.value(step["header"])}
        message = {"jsonrpc": "2.0", "id": 1, "method": step["post"], "params": self.in_session(step, {})}
        async with httpx2.AsyncClient() as client:
            response = await client.post(OPTIONS.where[0], headers=headers, json=message)
        assert response.status_code == step["status"], f"status {response.status_code}: {response.text}"

    async def step(self, step):
        if "capabilities" in step:
            # The client keeps only capabilities that it knows, so this reads the server's message.
            if self.era is ERAS["modern"]:
                response = (await self.send("server/discover", {}))["result"]
            else:
                response = (await asyncio.wait_for(self.received.get(), TIMEOUT_SECS))["result"]
            return self.check(step["capabilities"], response["capabilities"], "capabilities")
        if "receive" in step:
            return await self.receive(step)
        if "post" in step:
            return await self.post(step)
        if "listen" in step:
            self.listening[step["listen"]] = asyncio.ensure_future(self.send("messages/listen", self.in_session(step, {})))
            return
        if "answered" in step:
            answer = await asyncio.wait_for(self.listening.pop(step["answered"]), TIMEOUT_SECS)
        elif "change" in step:
            answer = await self.send("tools/call", self.in_session(step, json.loads(OPTIONS.change)))
        else:
            answer = await self.send(step["ask"], self.in_session(step, self.value(step["params"])))
        kind = "error" if "error" in step else "result"
        assert kind in answer, f"expected {kind}, got {json.dumps(answer)}"
        self.check(step.get(kind, {}), answer[kind], kind)
        if "save" in step:
            self.saved[step["save"]] = answer["result"]


async def run(case, era):
    received = asyncio.Queue()
    if OPTIONS.transport == "stdio":
        command, *arguments = OPTIONS.where
        transport = stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))
    else:
        transport = streamable_http_client(OPTIONS.where[0])
    async with Client(recorded(transport, received), mode=ERAS[era]["mode"]) as client:
        one = Run(client, era, received)
        for number, step in enumerate(case["steps"], 1):
            if era in step.get("eras", ERAS):
                try:
                    await one.step(step)
                except Exception as error:
                    raise AssertionError(f"step {number}, {json.dumps(step)}: {error!r}") from error


async def main():
    failed = ran = 0
    for case in json.loads(pathlib.Path(__file__).with_name("cases.json").read_text()):
        if case.get("server", "normal") != OPTIONS.server or OPTIONS.transport not in case.get("transports", ["stdio", "http"]):
            continue
        for era in case.get("eras", ERAS):
            ran += 1
            try:
                await run(case, era)
                print(f"ok    {era:6} {case['rule']}")
            except BaseException as error:
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                failed += 1
                print(f"FAIL  {era:6} {case['rule']}\n      {error}")
    print(f"{ran - failed} of {ran} hold")
    sys.exit(failed > 0 or ran == 0)


asyncio.run(main())
