"""A program that meets a schema of another version ends at once, and says what to do."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.cli.invoking import invoke

OLDER = "UPDATE timeball.migration SET checksum = 'x' WHERE name = 'functions/claim.sql'"
NEWER = "INSERT INTO timeball.migration VALUES ('migrations/9999_later.sql', 'x')"


@pytest.mark.parametrize("words", [("worker", "-a", "app.py"), ("up",), ("jobs", "list")])
@pytest.mark.parametrize(
    ("change", "told"),
    [(OLDER, "run `timeball db migrate`"), (NEWER, "install the newer Timeball")],
)
def test_a_worker_starts_on_no_schema_of_another_version(
    words: tuple[str, ...], change: str, told: str, direct: str, tmp_path: Path
) -> None:
    given = (str(tmp_path / "crontab"),) if words == ("up",) else ()
    (tmp_path / "crontab").write_text("@daily true\n")
    with psycopg.connect(direct, autocommit=True) as owner:
        owner.execute("CREATE TEMP TABLE kept AS TABLE timeball.migration")
        owner.execute(change.encode())
        try:
            refused = invoke(*words, *given, "--dsn", direct)
        finally:
            owner.execute("DELETE FROM timeball.migration")
            owner.execute("INSERT INTO timeball.migration SELECT * FROM kept")
    assert refused.exit_code == 6, refused.output
    assert told in refused.output
