"""Requests to an ASGI application in this process: no server, no port, no other package."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode

LOCAL = ("127.0.0.1", 50_000)
HERE = ("127.0.0.1", 8642)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, list[str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return ", ".join(self.headers.get(name, []))


class Browser:
    """Asks an application; what it is told to remember it sends along."""

    def __init__(self, app: Any, token: str | None = None, **scope: Any) -> None:
        self.app, self.token = app, token
        self.scope: dict[str, Any] = {"client": LOCAL, "server": HERE, "root_path": "", **scope}
        self.cookies: dict[str, str] = {}
        self.sent: list[dict[str, Any]] = []

    @property
    def told(self) -> Answer:
        """The last answer."""
        headers: dict[str, list[str]] = {}
        for name, value in self.sent[0]["headers"]:
            headers.setdefault(name.decode().lower(), []).append(value.decode("latin-1"))
        body = b"".join(message.get("body", b"") for message in self.sent[1:])
        return Answer(self.sent[0]["status"], headers, body)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def send(self, method: str, path: str, value: Any = None, **headers: str) -> Answer:
        body = b"" if value is None else json.dumps(value).encode()
        kind = {"content-type": "application/json"} if value is not None else {}
        return self.ask(method, path, body, headers={**kind, **headers})

    def form(self, path: str, **fields: str) -> Answer:
        """POST as a browser does from a page of the same origin."""
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": "null",  # as from every page that sends no referrer
            "sec-fetch-site": "same-origin",
        }
        return self.ask("POST", path, urlencode(fields).encode(), headers=headers)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        sent = {"host": "localhost", "content-length": str(len(body))}
        if self.token is not None:
            sent["authorization"] = f"Bearer {self.token}"
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent |= {name.replace("_", "-"): text for name, text in (headers or {}).items()}
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), text.encode("latin-1")) for name, text in sent.items()],
            **self.scope,
        }
        self.sent = []
        asyncio.run(_answer(self.app, scope, body, self.sent))
        answer = self.told
        for cookie in answer.headers.get("set-cookie", []):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
        return answer


async def _answer(app: Any, scope: dict[str, Any], body: bytes, sent: list[dict[str, Any]]) -> None:
    incoming = iter([{"type": "http.request", "body": body, "more_body": False}])
    some = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if (message := next(incoming, None)) is not None:
            return message
        if scope["path"].endswith("/events"):  # it ends when its reader goes
            await some.wait()
            return {"type": "http.disconnect"}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message.get("body"):
            some.set()

    await asyncio.wait_for(app(scope, receive, send), 30)
