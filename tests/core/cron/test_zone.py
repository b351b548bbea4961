"""Zones: every transition as zoneinfo has it, names that are refused, the newer data wins."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.core.cron.oracle import EPOCH, NAMES, reference_zone

from timeball.core.cron import load_zone, zone_version, zonedata
from timeball.core.cron.zone import decode
from timeball.errors import InvalidSchedule

CHUNKS = 24
YEAR_3000 = int(datetime(3000, 1, 1, tzinfo=UTC).timestamp())


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_offsets_are_those_of_zoneinfo_around_every_transition(chunk: int) -> None:
    for name in NAMES[chunk::CHUNKS]:
        zone, reference = load_zone(name, "package"), reference_zone(name)
        listed = [at for at in zone.starts[1:] if at < YEAR_3000]
        # the rule of the last years repeats: a sample of it says as much as all of it
        for start in [*listed[:200], *listed[200::29]]:
            for at in (start - 1, start, start + 1):
                shown = (EPOCH + timedelta(seconds=at)).astimezone(reference)
                assert shown.utcoffset() == timedelta(seconds=zone.offset(at)), (name, at)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_transition_is_missed(chunk: int) -> None:
    for name in NAMES[chunk::CHUNKS]:
        zone, reference = load_zone(name, "package"), reference_zone(name)
        for day in range(-30_000, 60_000, 97):  # 1887 to 2134
            at = day * 86_400 + 43_200
            shown = (EPOCH + timedelta(seconds=at)).astimezone(reference)
            assert shown.utcoffset() == timedelta(seconds=zone.offset(at)), (name, at)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_stretches_are_long_enough_for_the_engine_to_look_at_one_seam_at_a_time(chunk: int) -> None:
    for name in NAMES[chunk::CHUNKS]:
        zone = load_zone(name, "package")
        assert list(zone.starts) == sorted(set(zone.starts))
        pairs = list(zip(zone.starts, zone.starts[1:], strict=False))
        assert all(later - start >= 6 * 86_400 for start, later in pairs)
        jumps = [abs(b - a) for a, b in zip(zone.offsets, zone.offsets[1:], strict=False)]
        assert all(0 < jump <= 86_400 for jump in jumps)


@pytest.mark.parametrize(
    ("rule", "year", "offsets"),
    [
        # a rule of every form; offsets in minutes on 15 January, 1 March and 15 July
        ("UTC0", 2030, (0, 0, 0)),
        ("<+0545>-5:45", 2030, (345, 345, 345)),
        ("EST5EDT,M3.2.0,M11.1.0", 2030, (-300, -300, -240)),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", 2030, (0, 0, 60)),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2030, (-120, -120, -60)),
        ("AAA-1BBB-3,J60/0,J300", 2028, (60, 180, 180)),
        ("AAA-1BBB-3,J60/0,J300", 2030, (60, 180, 180)),
        ("AAA-1BBB-3,60/0,300", 2028, (60, 180, 180)),
        ("AAA-1BBB-3,60/0,300", 2030, (60, 60, 180)),
        ("AAA5BBB,0/0,J365/25", 2030, (-240, -240, -240)),
    ],
)
def test_the_rule_at_the_end_of_a_file_holds_for_ever(
    rule: str, year: int, offsets: tuple[int, ...]
) -> None:
    zone = decode("Test/Zone", tzif(rule, offset=-int(1e4)))
    for (month, day), minutes in zip(((1, 15), (3, 1), (7, 15)), offsets, strict=True):
        noon = int(datetime(year, month, day, 12, tzinfo=UTC).timestamp())
        assert zone.offset(noon) == minutes * 60


def tzif(rule: str, offset: int) -> bytes:
    """Return a TZif file of one transition, in 1990, and a rule after it."""
    header = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, 1, 2, 4)
    kinds = struct.pack(">lBBlBB", offset, 0, 0, 3600, 0, 0)
    old = struct.pack(">lB", 631_152_000, 1) + kinds + b"LMT\0"
    new = struct.pack(">qB", 631_152_000, 1) + kinds + b"LMT\0"
    return header + old + header + new + b"\n" + rule.encode() + b"\n"


@pytest.mark.parametrize("data", [b"", b"TZif", b"text that is no zone", tzif("UTC0", 0)[:60]])
def test_broken_data_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidSchedule, match=r"Test/Zone.*reinstall"):
        decode("Test/Zone", data)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("EST", "America/New_York"),
        ("est", "America/New_York"),
        ("CET", "Europe/Paris"),
        ("PST", "America/Los_Angeles"),
        ("../x", "paths are never read"),
        ("/etc/passwd", "paths are never read"),
        ("/etc/localtime", "paths are never read"),
        ("Europe/../UTC", "paths are never read"),
        ("Europe//Paris", "paths are never read"),
        ("Europe\\Paris", "paths are never read"),
        ("C:/zone", "paths are never read"),
        ("Europe/Paris\n", "paths are never read"),
        ("Europe/Paris\x00", "paths are never read"),
        ("Európe/Paris", "paths are never read"),
        ("x" * 1_000_000, "Europe/Paris"),
        ("right/UTC", "not a place"),
        ("posix/UTC", "not a place"),
        ("localtime", "not a place"),
        ("Europe/Pariss", "did you mean Europe/Paris?"),
        ("europe/paris", "did you mean Europe/Paris?"),
        ("UTC+5", "write Etc/GMT-5"),
        ("GMT-03", "write Etc/GMT+3"),
        ("Europe", "unknown"),
        ("zone.tab", "Europe/Paris"),
        ("tzdata", "unknown"),
        ("leapseconds", "unknown"),
        ("Mars/Phobos", "write a name of the zone database"),
    ],
)
def test_what_is_no_zone_is_refused_with_a_way_out(name: str, advice: str) -> None:
    with pytest.raises(InvalidSchedule, match="time zone") as caught:
        load_zone(name)
    assert advice in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("name", "alias_of"),
    [
        ("US/Eastern", "America/New_York"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("Europe/Kyiv", None),
        ("Europe/Amsterdam", None),
        ("UTC", None),
    ],
)
def test_an_alias_is_known_as_one_and_a_country_is_none(name: str, alias_of: str | None) -> None:
    zone = load_zone(name, "package")
    assert zone.alias_of == alias_of
    if alias_of:
        target = load_zone(alias_of, "package")
        assert (zone.starts, zone.offsets) == (target.starts, target.offsets)


def test_versions_of_the_zone_data_are_ordered() -> None:
    ordered = ["", "2025b", "2025c", "2026a", "2026z", "2026za", "2027a"]
    mixed = ordered[::-1]
    assert sorted(mixed, key=zonedata.version_key) == ordered


def copy(folder: Path, version: str, offset_hours: int) -> Path:
    """Make a folder of zone data in which Test/Zone keeps one offset for ever."""
    (folder / "Test").mkdir(parents=True)
    sign = "-" if offset_hours >= 0 else ""
    data = tzif(f"AAA{sign}{abs(offset_hours)}", offset_hours * 3600)
    (folder / "Test" / "Zone").write_bytes(data)
    if version:
        (folder / "tzdata.zi").write_text(f"# version {version}\nZ Test/Zone 0 - X\n")
    return folder


@pytest.fixture
def _forget() -> Iterator[None]:
    for cached in (zonedata._folders, zonedata._load):
        cached.cache_clear()
    yield
    for cached in (zonedata._folders, zonedata._load):
        cached.cache_clear()


@pytest.mark.usefixtures("_forget")
@pytest.mark.parametrize(
    ("system", "newest"), [("2099a", "2099a"), ("2019a", "package's"), ("", "package's")]
)
def test_the_newer_zone_data_is_used(
    system: str, newest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zonedata.zoneinfo, "TZPATH", (str(copy(tmp_path, system, 3)),))
    assert zone_version("system") == system
    assert zone_version() == (zone_version("package") if newest == "package's" else newest)
    # the one that lacks a name is helped out by the other
    assert load_zone("Test/Zone").offset(2**31) == 3 * 3600
    assert load_zone("Europe/Paris").version == zone_version("package")
    with pytest.raises(InvalidSchedule, match="unknown"):
        load_zone("Test/Zone", "package")
    with pytest.raises(InvalidSchedule, match="unknown"):
        load_zone("Europe/Paris", "system")


@pytest.mark.usefixtures("_forget")
def test_a_machine_without_the_package_falls_back_to_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zonedata, "_package", list)
    monkeypatch.setattr(zonedata.zoneinfo, "TZPATH", (str(tmp_path / "nowhere"),))
    assert zone_version() == ""
    with pytest.raises(InvalidSchedule, match="unknown"):
        load_zone("Europe/Paris")


def test_a_fingerprint_changes_when_the_zone_does_and_only_then() -> None:
    begin, end = 1_790_000_000, 1_850_000_000
    york, eastern = load_zone("America/New_York"), load_zone("US/Eastern")
    assert york.fingerprint(begin, end) == eastern.fingerprint(begin, end)
    assert york.fingerprint(begin, end) == york.fingerprint(begin + 60, end - 60)
    assert york.fingerprint(begin, end) != load_zone("America/Havana").fingerprint(begin, end)
    assert york.fingerprint(begin, end) != load_zone("America/Bogota").fingerprint(begin, end)
