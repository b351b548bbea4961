"""Where the program `timeball` starts. To say its version it loads nothing at all."""

from __future__ import annotations

import sys

from timeball import __version__


def main() -> None:
    """Carry out the command line of this process."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"timeball {__version__}\n")
        return
    from timeball.cli.commands import timeball

    timeball(prog_name="timeball")
