"""The client's history: each call as the driver of a scenario made it, by its own clock."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

from timeball.errors import StoreUnavailable, TimeballError

_ENDED: Final = frozenset({"08", "57"})
"""Classes of SQLSTATE by which a session has ended, maybe after it carried out what was asked."""


class History:
    """Appends events of calls to a file, each as one line of JSON.

    Every call begins with `invoke` and ends with `ok`, `fail` (it did not happen) or `unknown`
    (nobody knows whether it did).

    Args:
        path: Of the file.
        scenario: Whose it is.
    """

    def __init__(self, path: Path, scenario: str) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._scenario = scenario
        self._lock = Lock()
        self._calls = 0

    @contextmanager
    def calling(self, call: str, **facts: Any) -> Iterator[dict[str, Any]]:
        """Note a call while the block makes it; what is put into the dictionary is its answer."""
        with self._lock:
            self._calls += 1
            number = self._calls
        self._note(number, "invoke", call, facts)
        answer: dict[str, Any] = {}
        how = "unknown"
        try:
            yield answer
            how = "ok"
        except StoreUnavailable as error:
            answer["error"] = str(error)
            raise
        except TimeballError as error:
            how, answer["error"] = "fail", str(error)
            raise
        except Exception as error:  # of a statement: the server has said that it did not happen
            sqlstate = getattr(error, "sqlstate", None)
            if sqlstate is not None and sqlstate[:2] not in _ENDED:
                how = "fail"
            answer["error"] = sqlstate or type(error).__name__
            raise
        finally:
            self._note(number, how, call, answer)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _note(self, number: int, event: str, call: str, facts: dict[str, Any]) -> None:
        told = {
            "scenario": self._scenario,
            "call": call,
            "number": number,
            "event": event,
            "at_ns": time.monotonic_ns(),
            **facts,
        }
        with self._lock:
            self._file.write(json.dumps(told, default=str) + "\n")
            self._file.flush()
