"""From `up` to its workers: what a crontab's lines are, word for word."""

from __future__ import annotations

import json
import os
import pwd

import pytest

from timeball.cli import crontab_kinds
from timeball.cli.crontab_kinds import handed_over, load, own_name
from timeball.importers.crontab import UserInfo, read_crontab

TEXT = """\
GREETING=hello
* * * * * echo "$GREETING"%first%second
CRON_TZ=Asia/Seoul
* * * * * echo plain
GREETING=bye
* * * * * echo other
"""
OWNER = UserInfo(name=own_name(), home="/usr")


def entries(text: str = TEXT, **how):
    how = {"form": "user", "owner": OWNER, "known_user": lambda _: None, **how}
    return read_crontab(text, source="/etc/x.cron", default_tz="UTC", **how).entries


def through_json(found):
    return json.loads(json.dumps(handed_over(found)))


def commands(found) -> list:
    told = through_json(found)
    environments = told["environments"]
    return [crontab_kinds._command(line, environments[line["env"]]) for line in told["lines"]]


def test_each_line_is_a_kind_under_the_name_of_its_schedule() -> None:
    registry = load("/etc/x.cron", **through_json(entries()))
    assert list(registry) == [entry.name for entry in entries()]
    assert [kind.place for kind in registry.values()] == [
        *("/etc/x.cron:2", "/etc/x.cron:4", "/etc/x.cron:6")
    ]
    assert [kind.schedules for kind in registry.values()] == [(), (), ()]


def test_a_command_is_what_cron_would_run() -> None:
    first, plain, other = commands(entries())
    assert first.shell_text == 'echo "$GREETING"'
    assert first.stdin == b"first\nsecond\n"
    assert (first.shell, first.cwd, first.user) == ("/bin/sh", "/usr", None)
    assert first.env["HOME"] == "/usr"
    assert first.env["LOGNAME"] == own_name()
    assert first.env["GREETING"] == "hello"
    assert plain.env == {**first.env, "CRON_TZ": "Asia/Seoul"}
    assert other.env["GREETING"] == "bye"


def test_lines_share_their_environment() -> None:
    text = "A=1\n" + "* * * * * true\n" * 50
    told = through_json(entries(text))
    assert len(told["environments"]) == 1
    assert len(told["lines"]) == 50


def test_another_user_is_said_and_ones_own_is_not() -> None:
    found = entries(
        f"* * * * * {own_name()} true\n* * * * * nobody true\n",
        form="system",
        known_user=lambda name: UserInfo(name=name, home=f"/{name}"),
    )
    mine, others = commands(found)
    assert (mine.user, others.user) == (None, "nobody")
    assert (mine.env["HOME"], others.env["HOME"]) == (f"/{own_name()}", "/nobody")


def test_a_user_without_a_name_is_a_number(monkeypatch) -> None:
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    free = next(number for number in range(54_321, 60_000) if number not in taken)
    monkeypatch.setattr(os, "geteuid", lambda: free)
    assert own_name() == str(free)


@pytest.mark.parametrize("home", ["/no/such/folder", "", "relative"])
def test_without_a_home_a_command_starts_at_the_root(home: str) -> None:
    (command,) = commands(entries(f"HOME={home}\n* * * * * true\n"))
    assert command.cwd == "/"
    assert command.env["HOME"] == home


def test_a_line_may_use_sudo() -> None:
    assert {command.no_new_privs for command in commands(entries())} == {False}
