"""Whether the API keeps what its description says, attacked by schemathesis.

    pip install schemathesis        # in an environment of its own, if you like
    .venv/bin/python bench/schema_fuzz.py [--seconds 180] [--schemathesis PATH] [ARGUMENT…]

Serves a new database, and lets schemathesis send all that the description allows and much that it
does not, with a token and without, for so many seconds; further arguments are passed on to it.
Ends with its exit code: 0 where nothing was found.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

from timeball.client import Client
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate
from timeball.web import Scope, Token, create_app
from timeball.web.server import bound, served

# A name has 256 bytes of printable text, a job that is a batch is cancelled as one: no schema says
# that, so 400, with words, is an answer to what a schema lets pass. 422 and 500 are not.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 429]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 503]

[dictionaries]
schedules.values = {names}
batches.values = ["{batch}"]

[parameters]
schedule = {{ dictionary = "schedules", probability = 0.7 }}
batch = {{ dictionary = "batches", probability = 0.7 }}
"""
NAMES = ["nightly", "a/b c", "..", "nobody"]


def fill(client: Client) -> str:
    """Give all that can be asked for something to find; return the uuid of a batch."""
    for n in range(20):
        client.submit("a.kind", queue="a queue", args={"x": n})
    for name in NAMES[:-1]:
        client.schedule(name, "a.kind", cron="30 2 * * *", tz="Europe/Berlin")
    client.limit(queue="a queue", at_once=3)
    with client.batch("a batch") as batch:
        batch.submit("b.kind", after=[batch.submit("a.kind")])
    return str(client.batches(limit=1)[0].uuid)


def main() -> int:
    """Attack it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--schemathesis", default=which("schemathesis"))
    asked, more = parser.parse_known_args()
    if asked.schemathesis is None:
        print("schemathesis is not installed: pip install schemathesis", file=sys.stderr)
        return 2
    token, text = Token.new("fuzz", [Scope.ADMIN])
    os.environ.setdefault("TIMEBALL_SECRET_CALLBACK", secrets.token_hex(32))
    with (
        tempfile.TemporaryDirectory(prefix="timeball-fuzz-") as folder,
        EmbeddedPostgres(Path(folder, "data"), linger_s=0.0) as server,
    ):
        store = PostgresStore(server.dsn)
        migrate(store.connections)
        config = CONFIG.format(names=json.dumps(NAMES), batch=fill(Client(store)))
        Path(folder, "schemathesis.toml").write_text(config)
        app = create_app(Client(store), tokens=[token])
        with served(app, bound("127.0.0.1", 0, tokens=True)) as url:
            sent = ("--header", f"Authorization: Bearer {text}", "--continue-on-failure")
            how = ("--max-time", str(asked.seconds), "--checks", "all", *sent, *more)
            run = [asked.schemathesis, "run", f"{url}api/v1/openapi.json", *how]
            found = subprocess.run(run, cwd=folder, check=False)
        app.state.desk.look_connections.close()
        store.close()
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())
