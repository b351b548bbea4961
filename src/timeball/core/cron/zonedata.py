"""Finds the data of a time zone: the newer of the `tzdata` package and the system's copy.

The one corner of the core that reads files, because zone data is a table and not an input:
only what ships with Python packages and the folders that `zoneinfo` searches. Python itself
prefers the system's copy, which is often a year older than the package and then plainly wrong
wherever a government has changed its clocks since.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from timeball.core.cron.zone import Zone, decode
from timeball.errors import InvalidSchedule

ABBREVIATIONS = {
    "ACST": "Australia/Adelaide",
    "AEDT": "Australia/Sydney",
    "AEST": "Australia/Sydney",
    "AKST": "America/Anchorage",
    "AST": "America/Halifax",
    "BST": "Europe/London",
    "CDT": "America/Chicago",
    "CEST": "Europe/Paris",
    "CET": "Europe/Paris",
    "CST": "America/Chicago",
    "EDT": "America/New_York",
    "EEST": "Europe/Athens",
    "EET": "Europe/Athens",
    "EST": "America/New_York",
    "HST": "Pacific/Honolulu",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "MDT": "America/Denver",
    "MET": "Europe/Paris",
    "MSK": "Europe/Moscow",
    "MST": "America/Denver",
    "NZDT": "Pacific/Auckland",
    "NZST": "Pacific/Auckland",
    "PDT": "America/Los_Angeles",
    "PST": "America/Los_Angeles",
    "SGT": "Asia/Singapore",
    "WET": "Europe/Lisbon",
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_NAME_LENGTH_MAX = 64
_OFFSET = re.compile(r"(?:UTC|GMT)([+-])(\d{1,2})", re.ASCII)
_VERSION = re.compile(r"(20\d\d)([a-z]+)", re.ASCII)
# "right" counts leap seconds, the rest are no places at all
_NO_PLACES = {"posix", "right", "posixrules", "localtime", "Factory"}


class ZoneSource(StrEnum):
    """Where zone data may come from."""

    NEWEST = "newest"
    PACKAGE = "package"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class _Folder:
    """One copy of the zone data; `version` is "" where the copy does not say."""

    root: Traversable
    version: str

    def read(self, name: str) -> bytes | None:
        file = self.root.joinpath(*name.split("/"))
        return file.read_bytes() if file.is_file() else None

    def lines(self, name: str) -> list[str]:
        return (self.read(name) or b"").decode(errors="replace").splitlines()


def load_zone(name: str, source: ZoneSource | str = ZoneSource.NEWEST) -> Zone:
    """Return the time zone of that name, from the newest zone data on this machine.

    Args:
        name: A name of the IANA database, such as `Europe/Paris`; upper and lower case count.
        source: `"newest"`, or `"package"` or `"system"` to insist on one copy.

    Raises:
        InvalidSchedule: No such zone, an abbreviation, or not a name at all.
    """
    return _load(_checked(name), ZoneSource(source))


def zone_version(source: ZoneSource | str = ZoneSource.NEWEST) -> str:
    """Return the version of the zone data in use, such as `2026f`; "" when none says."""
    folders = _folders(ZoneSource(source))
    return folders[0].version if folders else ""


@cache
def _load(name: str, source: ZoneSource) -> Zone:
    for folder in _folders(source):
        data = folder.read(name)
        if data is not None and data.startswith(b"TZif"):
            alias_of = _aliases(folder).get(name)
            return decode(name, data, alias_of=alias_of, version=folder.version)
    raise InvalidSchedule(f"time zone {name!r} is unknown; {_suggestion(name, source)}")


def _checked(name: str) -> str:
    """Return the name itself when it can be one; nothing that fails here reaches a disk."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidSchedule("time zone is empty; write a name such as Europe/Paris, or UTC")
    shown = ascii(name[:_NAME_LENGTH_MAX]) + ("…" if len(name) > _NAME_LENGTH_MAX else "")
    if name.upper() in ABBREVIATIONS:
        better = ABBREVIATIONS[name.upper()]
        raise InvalidSchedule(
            f"time zone {shown} is an abbreviation, which says nothing about daylight-saving "
            f"time; write a place such as {better}"
        )
    if len(name) > _NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        raise InvalidSchedule(
            f"time zone {shown} is not a name of the zone database (and paths are never read); "
            "write a name such as Europe/Paris"
        )
    if name.split("/", maxsplit=1)[0] in _NO_PLACES:
        raise InvalidSchedule(f"time zone {shown} is not a place; write one such as Europe/Paris")
    return name


@cache
def _folders(source: ZoneSource) -> tuple[_Folder, ...]:
    """Return the copies of the zone data to ask, the newest first."""
    found: list[_Folder] = []
    if source is not ZoneSource.SYSTEM:
        found += [_Folder(root, _version(root)) for root in _package()]
    if source is not ZoneSource.PACKAGE:
        roots = [Path(folder) for folder in zoneinfo.TZPATH if Path(folder).is_dir()]
        found += [_Folder(root, _version(root)) for root in roots]
    # a stable sort: the package, which the user can update with pip, wins a tie
    return tuple(sorted(found, key=lambda folder: version_key(folder.version), reverse=True))


def _package() -> list[Traversable]:
    try:
        return [resources.files("tzdata").joinpath("zoneinfo")]
    except ModuleNotFoundError:
        return []


def _version(root: Traversable) -> str:
    """Return what a copy says of itself: the first line of tzdata.zi, or a file +VERSION."""
    for name in ("tzdata.zi", "+VERSION"):
        found = _VERSION.search("".join(_Folder(root, "").lines(name)[:1]))
        if found:
            return found.group()
    return ""


def version_key(version: str) -> tuple[int, int, str]:
    """Return what versions sort by: 2025b < 2026a < 2026z < 2026za; unknown is the oldest."""
    found = _VERSION.fullmatch(version)
    return (int(found[1]), len(found[2]), found[2]) if found else (0, 0, "")


@cache
def _aliases(folder: _Folder) -> dict[str, str]:
    """Return old names and what they mean now; a country's own name is no alias."""
    places = {line.split("\t")[2] for line in folder.lines("zone.tab") if line[:1] not in ("#", "")}
    links = [line.split() for line in folder.lines("tzdata.zi") if line.startswith("L ")]
    return {old: new for _, new, old in links if old not in places and "UTC" not in old}


def _suggestion(name: str, source: ZoneSource) -> str:
    offset = _OFFSET.fullmatch(name)
    if offset:
        sign = "-" if offset[1] == "+" else "+"
        return f"write Etc/GMT{sign}{int(offset[2])}, whose sign counts the other way round"
    known = [name for folder in _folders(source) for name in _names(folder)]
    by_folded = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    if close:
        return f"did you mean {by_folded[close[0]]}?"
    return "write a name of the zone database such as Europe/Paris, or UTC"


def _names(folder: _Folder) -> list[str]:
    """Return the names that `tzdata.zi` defines: `Z name …` and `L target name`."""
    words = [line.split(maxsplit=3) for line in folder.lines("tzdata.zi")]
    return [line[1] if line[0] == "Z" else line[2] for line in words if line[0] in ("Z", "L")]
