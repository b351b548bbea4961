"""Schedules: what they mean, when they come due, and how to say it in words."""

from __future__ import annotations

from timeball.core.cron.agenda import Agenda, Due, agenda, settled
from timeball.core.cron.explain import Preview, dst_preview, prose, warnings
from timeball.core.cron.expression import Expression, read
from timeball.core.cron.fields import Cron, DayRule
from timeball.core.cron.occurrences import Occurrence, Timetable
from timeball.core.cron.parse import parse
from timeball.core.cron.policy import Dst, Gap, Overlap, Policy, resolve
from timeball.core.cron.terms import OnExcluded, Terms
from timeball.core.cron.zone import Zone
from timeball.core.cron.zonechange import fingerprint, recompute
from timeball.core.cron.zonedata import ZoneSource, load_zone, zone_version

__all__ = [
    "Agenda",
    "Cron",
    "DayRule",
    "Dst",
    "Due",
    "Expression",
    "Gap",
    "Occurrence",
    "OnExcluded",
    "Overlap",
    "Policy",
    "Preview",
    "Terms",
    "Timetable",
    "Zone",
    "ZoneSource",
    "agenda",
    "dst_preview",
    "fingerprint",
    "load_zone",
    "parse",
    "prose",
    "read",
    "recompute",
    "resolve",
    "settled",
    "warnings",
    "zone_version",
]
