"""Supervisors for the tests, within this process and as processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
from tests.proxy import Proxy, proxied
from tests.worker.bank import Bank
from tests.worker.supervision import APP, MAIN, PATIENCE_S, configured, until

from timeball.core.audit import audit
from timeball.store.postgres import PostgresStore
from timeball.worker.supervisor import Supervisor, SupervisorConfig


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture
def config(dsn: str, folder: Path) -> SupervisorConfig:
    return configured(dsn, folder)


@pytest.fixture
def supervise() -> Iterator[Callable[[SupervisorConfig], Supervisor]]:
    """Starts a supervisor within this process."""
    started: list[Supervisor] = []

    def start(config: SupervisorConfig) -> Supervisor:
        supervisor = Supervisor(config)
        supervisor.start()
        started.append(supervisor)
        return supervisor

    yield start
    for supervisor in started:
        supervisor.stop(now=True)
        assert supervisor.wait(PATIENCE_S) is not None


@pytest.fixture
def launch(folder: Path) -> Iterator[Callable[[SupervisorConfig], subprocess.Popen[bytes]]]:
    """Starts a supervisor as a process of its own, its stderr in a file."""
    launched: list[subprocess.Popen[bytes]] = []

    def start(config: SupervisorConfig) -> subprocess.Popen[bytes]:
        with (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-c", MAIN], stdin=subprocess.PIPE, stderr=stderr
            )
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(msgspec.json.encode(asdict(config)))
        launched.append(process)
        return process

    yield start
    for process in launched:
        process.kill()
        process.wait()


@pytest.fixture
def bank(store: PostgresStore, direct: str) -> Iterator[Bank]:
    bank = Bank(store, direct)
    yield bank
    until(lambda: bank.sessions() == 0, "no transaction is left open")
    bank.close()
    assert audit(store.histories(), quiesced=False).violations == ()


@pytest.fixture
def proxy(bank: Bank, direct: str) -> Iterator[Proxy]:
    """What the transactions of the jobs go through; all else has a connection of its own."""
    with proxied(direct) as proxy:
        through = PostgresStore(proxy.dsn)
        bank.bench = bank.bench._replace(transactions=through.transactions)
        yield proxy
        through.close()
