"""Names of batches are shown to people, on terminals too."""

from __future__ import annotations

from uuid import uuid4

import pytest

from timeball.client.batch_plan import NAME_MAX, Plan
from timeball.errors import UsageError


@pytest.mark.parametrize("name", ["\0", "a\nb", "\x1b[2J", "\u202eabc", "x" * (NAME_MAX + 1)])
def test_a_batch_has_a_name_that_can_be_printed(name: str) -> None:
    with pytest.raises(UsageError, match="printable"):
        Plan(uuid4(), name, {})


def test_a_batch_may_be_called_anything_else() -> None:
    Plan(uuid4(), "Nächtlicher Abgleich, 夜", {})
