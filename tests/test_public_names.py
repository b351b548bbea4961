import subprocess
import sys

import timeball

NAMES = {
    "AsyncClient", "AsyncScheduler", "Batch", "Cancel", "CancelAnswer", "Client", "Context",
    "DeadlockError", "Delivery", "Draft", "Handle", "Job", "PermanentError", "Processes", "Rate",
    "Retry", "Scheduler", "SchedulerClosed", "Secret", "Snooze", "State", "StoreUnavailable",
    "TimeballError", "UsageError", "__version__", "callback", "callback_url", "chain", "chord",
    "command", "connect", "connect_async", "cron", "draft", "group", "http", "job", "sql",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(timeball.__all__) == set(dir(timeball)) == NAMES


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in NAMES - {"__version__"}:
        assert getattr(timeball, name).__doc__, name


def test_importing_the_package_loads_no_driver() -> None:
    heavy = {"psycopg", "msgspec", "click"}
    code = f"import sys, timeball; print({heavy} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert answer.stdout.decode().strip() == "set()"
