"""The command `timeball`: its commands, loaded when they are called, and its exit codes."""

from __future__ import annotations

import os
from importlib import import_module
from keyword import iskeyword
from types import MappingProxyType
from typing import Any, Final

import click

from timeball import __version__
from timeball.cli.output import say
from timeball.errors import (
    EmbeddedUnavailable,
    IllegalTransition,
    JobNotFound,
    QueueFull,
    ScheduleNotFound,
    SchemaMismatch,
    StoreUnavailable,
    TimeballError,
    UniqueClash,
    UsageError,
)

COMMANDS: Final = MappingProxyType(
    {
        "up": "Run the schedules of files of many formats: database, workers and all.",
        "import": "Turn schedules of cron, Celery, APScheduler, Kubernetes into schedules.toml.",
        "demo": "See it work: 300 jobs, a schedule, a worker killed, nothing lost.",
        "worker": "Run workers for the jobs of some modules.",
        "serve": "Serve the dashboard and the API.",
        "submit": "Add a job.",
        "run": "Run one HTTP request or one command as a job.",
        "callback": "Have jobs wait for a call from outside.",
        "jobs": "Look at jobs, follow them, cancel them.",
        "queues": "Look at queues, pause and resume them, and limit them.",
        "limits": "Say how many jobs of a key or a queue may be under way at once.",
        "cron": "Say when schedules run, and why then.",
        "batch": "Run many calls in this process; look after batches; draw how they went.",
        "db": "Start, stop and look after the database.",
        "doctor": "Say what is wrong with the database, and what mends it.",
        "audit": "Prove from the record that no job was lost and none ran twice.",
        "certify": "Attack every promise with faults, and tell whether it held.",
    }
)
"""Each is the attribute `command` of the module of its name in this package; a name that Python
keeps for itself gets an underscore."""

EXIT_CODES: Final = MappingProxyType(
    {
        UsageError: 2,
        JobNotFound: 3,
        ScheduleNotFound: 3,
        IllegalTransition: 4,
        UniqueClash: 4,
        QueueFull: 75,
        StoreUnavailable: 5,
        EmbeddedUnavailable: 5,
        SchemaMismatch: 6,
        TimeballError: 1,
    }
)
"""What an error that nobody could mend makes the exit code; the first that fits."""

EXIT_INTERRUPTED: Final = 130


class Commands(click.Group):
    """A group that imports a command when it is called, not before.

    Expected errors end here, as one sentence and an exit code. `TIMEBALL_DEBUG=1` adds
    where they came from.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        found = import_module(f"timeball.cli.{module}").command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out the command; tell expected errors and exit with their codes."""
        try:
            return super().invoke(ctx)
        except TimeballError as error:
            tell(error)
            code = next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # nobody reads any more; click ends quietly
                raise
            tell(error)
            code = 1
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        raise click.exceptions.Exit(code)


def tell(error: Exception) -> None:
    """Write what is wrong to stderr."""
    if os.environ.get("TIMEBALL_DEBUG"):
        import traceback

        say("".join(traceback.format_exception(error)))
    say(f"timeball: {error}")


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="timeball", message="%(prog)s %(version)s")
def timeball() -> None:
    """Timeball runs jobs once, on time, and can prove it."""
