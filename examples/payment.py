"""A payment whose answer is lost: charged once, because every attempt has the same key.

The server below takes the money and loses the connection before it can say so, twice. It keeps
what it has answered to which Idempotency-Key, as payment services do: python examples/payment.py
"""

from __future__ import annotations

import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import timeball as tb

charged: dict[str, bytes] = {}
attempts: list[str] = []


class Payments(BaseHTTPRequestHandler):
    """Charges once for each key; its first two answers never arrive."""

    def do_POST(self) -> None:
        """Take the money, if that has not been done."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Idempotency-Key"]
        attempts.append(key)
        charged.setdefault(key, body)
        if len(attempts) <= 2:  # noqa: PLR2004 - see above
            self.connection.close()
            return
        answer = b'{"status": "charged"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


with HTTPServer(("127.0.0.1", 0), Payments) as server:
    Thread(target=server.serve_forever).start()
    url = f"http://127.0.0.1:{server.server_port}/charges"
    os.environ["TIMEBALL_HTTP_ALLOW"] = "127.0.0.1"  # this machine is not public
    os.environ["TIMEBALL_SECRET_PAY"] = "sk-test-0123456789"  # noqa: S105 - no real one
    charge = tb.http(
        "POST",
        url,
        json={"amount": 1999, "currency": "eur"},
        auth=tb.Secret("env:PAY"),
        expect={"/status": "charged"},
        allow=["127.0.0.1"],
    )
    with tb.Scheduler() as scheduler:
        job = scheduler.submit(charge, retry=tb.Retry(5, base_s=0.01))
    server.shutdown()

print(f"{len(attempts)} attempts, {len(charged)} charge: {job.result()['body']}")
