"""How an action of Timeball's own says that its attempt has failed."""

from __future__ import annotations


class ActionFailed(Exception):
    """An attempt of an HTTP, command or SQL job has failed; no traceback is kept of it.

    Args:
        text: What happened and what to do, for people.
        error_type: A word for machines, one of few.
        again: Whether another attempt may help.
        retry_after_s: Seconds until then, where somebody has said so.
    """

    def __init__(
        self, text: str, *, error_type: str, again: bool, retry_after_s: float | None = None
    ) -> None:
        super().__init__(text)
        self.error_type = error_type
        self.again = again
        self.retry_after_s = retry_after_s
