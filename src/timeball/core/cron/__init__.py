"""Cron expressions: what they mean, when they come due, and how to say it in words."""

from __future__ import annotations

from timeball.core.cron.explain import Preview, dst_preview, prose, warnings
from timeball.core.cron.fields import Cron
from timeball.core.cron.occurrences import (
    Dst,
    Gap,
    Occurrence,
    Overlap,
    Policy,
    Timetable,
    resolve,
)
from timeball.core.cron.parse import parse
from timeball.core.cron.zone import Zone
from timeball.core.cron.zonedata import ZoneSource, load_zone, zone_version

__all__ = [
    "Cron",
    "Dst",
    "Gap",
    "Occurrence",
    "Overlap",
    "Policy",
    "Preview",
    "Timetable",
    "Zone",
    "ZoneSource",
    "dst_preview",
    "load_zone",
    "parse",
    "prose",
    "resolve",
    "warnings",
    "zone_version",
]
