"""Options of commands that run workers: what they tell to monitoring."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from timeball.cli.output import say

_Command = TypeVar("_Command", bound=Callable[..., Any])


def metrics_option(command: _Command) -> _Command:
    """Add `--metrics`."""
    return click.option(
        "--metrics",
        metavar="[HOST:]PORT",
        envvar="TIMEBALL_METRICS",
        help="Serve /metrics for Prometheus, /live and /ready, on this machine only; "
        "port 0 takes any that is free. Off by default.",
    )(command)


def web_option(command: _Command) -> _Command:
    """Add `--web`."""
    return click.option(
        "--web",
        metavar="[HOST:]PORT",
        envvar="TIMEBALL_WEB",
        help="Serve the dashboard too, on this machine only, to whoever can open the port; "
        "port 0 takes any that is free. Off by default; see `timeball serve`.",
    )(command)


def results_option(command: _Command) -> _Command:
    """Add `--results`."""
    return click.option(
        "--results",
        metavar="FOLDER",
        envvar="TIMEBALL_RESULTS",
        type=click.Path(file_okay=False, path_type=Path),
        help="Runs of `timeball certify --out FOLDER/…`: the dashboard shows them, and starts "
        "others there.",
    )(command)


def log_format_option(command: _Command) -> _Command:
    """Add `--log-format`."""
    return click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        envvar="TIMEBALL_LOG_FORMAT",
        help="What is written to stderr: warnings, or one JSON object per transition of a job.",
    )(command)


def say_url(url: str | None) -> None:
    """Say where the pages for monitoring are, if they are anywhere."""
    if url is not None:
        say(f"metrics at {url}/metrics, with /live and /ready beside it")
