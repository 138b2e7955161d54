"""MCP Agent Mail: reserve a path and release it, through its own tools, in one process.

Usage: agent_mail_peer.py FOLDER     an empty folder; asked through `serve`
Its database runs with synchronous=NORMAL; here it is set to FULL, as everywhere.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1]).resolve()
os.environ |= {
    "DATABASE_URL": f"sqlite+aiosqlite:///{FOLDER / 'mail.db'}",
    "STORAGE_ROOT": str(FOLDER / "archive"),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LLM_ENABLED": "false",
    "LOG_RICH_ENABLED": "false",
    "TOOLS_LOG_ENABLED": "false",
    "MCP_TOOLS_MODE": "extended",
    "FASTMCP_LOG_LEVEL": "WARNING",
}
os.chdir(FOLDER)  # it reads a .env of its working directory

from fastmcp import Client  # noqa: E402
from mcp_agent_mail.app import build_mcp_server  # noqa: E402
from mcp_agent_mail.db import get_engine, init_engine  # noqa: E402
from serve import rate, serve  # noqa: E402
from sqlalchemy import event, text  # noqa: E402

PROJECT = str(FOLDER / "project")


class Calls:
    def __init__(self) -> None:
        self.loop = asyncio.Runner()
        self.made = 0
        self.loop.run(self._open())

    async def _open(self) -> None:
        init_engine()

        @event.listens_for(get_engine().sync_engine, "connect")
        def durable(connection: object, _record: object) -> None:
            cursor = connection.cursor()
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.close()

        self.mail = await Client(build_mcp_server()).__aenter__()
        await self._call("ensure_project", human_key=PROJECT)
        who = {"project_key": PROJECT, "program": "bench", "model": "none"}
        self.names = [
            (await self._call("register_agent", **who, task_description=f"worker {n}"))["name"]
            for n in range(2)
        ]

    async def _call(self, tool: str, **arguments: object) -> dict:
        return (await self.mail.call_tool(tool, arguments)).structured_content

    def one(self, count: int) -> dict:
        return rate(count, lambda: self.loop.run(self._work(count, 1)))

    def batch(self, count: int) -> dict:
        return rate(count, lambda: self.loop.run(self._work(count, 100)))

    async def _work(self, count: int, size: int) -> None:
        for _ in range(count // size):
            paths = [f"services/module{self.made + n}" for n in range(size)]
            self.made += size
            held = await self._reserve(0, paths)
            assert len(held["granted"]) == size
            await self._release(0, paths)

    async def _reserve(self, agent: int, paths: list[str]) -> dict:
        return await self._call(
            "file_reservation_paths",
            project_key=PROJECT,
            agent_name=self.names[agent],
            paths=paths,
        )

    async def _release(self, agent: int, paths: list[str]) -> dict:
        return await self._call(
            "release_file_reservations",
            project_key=PROJECT,
            agent_name=self.names[agent],
            paths=paths,
        )

    def stale(self) -> dict:
        return self.loop.run(self._stale())

    async def _stale(self) -> dict:
        both = ["both"]
        await self._reserve(0, both)
        second = await self._reserve(1, both)
        await self._release(1, both)
        async with get_engine().begin() as db:  # the shortest reservation would be a minute
            await db.execute(
                text("UPDATE file_reservations SET expires_ts = '2020-01-01 00:00:00.000000'")
            )
        await self._reserve(1, both)
        late = await self._call(
            "renew_file_reservations",
            project_key=PROJECT,
            agent_name=self.names[0],
            extend_seconds=600,
            paths=both,
        )
        return {
            "completion": None,
            "renewal": bool(late["renewed"]),
            "granted_beside_a_live_holder": bool(second["granted"]),
        }


serve(Calls())
