"""A database for SQL jobs."""

from __future__ import annotations

from tests.postgres import direct, server, sweeper  # noqa: F401 - fixtures
