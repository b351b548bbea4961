"""Celery beat: every form of writing it, by Celery's own rules, and nothing of it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.cron import parse
from timeball.errors import UsageError
from timeball.importers.celery import celery_findings
from timeball.importers.found import Findings, Found, KindCall, Options

HEAD = """
import datetime as dt
from datetime import timedelta
from celery import Celery, shared_task
from celery.schedules import crontab, schedule, solar
app = Celery("shop")
"""


def findings(text: str, head: str = HEAD) -> Findings:
    return celery_findings(head + text, source="/srv/beat.py")


def beat(entry: str) -> Findings:
    return findings(f"app.conf.beat_schedule = {{'a': {{'task': 'shop.a', {entry}}}}}")


def one(entry: str) -> Found:
    (found,) = beat(entry).found
    return found


def lost(entry: str) -> str:
    read = beat(entry)
    assert read.found == ()
    (needs,) = read.needs
    assert (needs.line, needs.name) == (7, "a")
    return needs.text


# When ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expression", "left"),
    [
        ("crontab()", "* * * * *", "minute hour day_of_month month_of_year day_of_week"),
        ('crontab(hour="*/4")', "* */4 * * *", "minute day_of_month month_of_year day_of_week"),
        ("crontab(minute=0, hour=17)", "0 17 * * *", "day_of_month month_of_year day_of_week"),
        ("crontab(5, 17)", "5 17 * * *", "day_of_month month_of_year day_of_week"),
        (
            "crontab(0, 9, day_of_week='monday')",
            "0 9 * * MON",
            "day_of_month month_of_year",
        ),
        (
            "crontab([0, 30], '8-17/2', day_of_week='mon-fri', month_of_year='1,7')",
            "0,30 8-17/2 * 1,7 MON-FRI",
            "day_of_month",
        ),
    ],
)
def test_a_crontab_keeps_its_fields_and_says_which_were_left(
    written: str, expression: str, left: str
) -> None:
    found = one(f"'schedule': {written}")
    assert found.expression == expression
    assert found.defaulted == set(left.split())


def test_both_day_fields_must_fit() -> None:
    found = one("'schedule': crontab(minute=0, hour=0, day_of_month='1-7', day_of_week=1)")
    assert found.expression == "0 0 1-7 * 1"
    assert found.options.day_rule == "and"


@settings(max_examples=15)
@given(
    st.one_of(
        st.integers(1, 6).map(lambda step: f"*/{step}"),
        st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.lists(st.sampled_from("0123456"), min_size=1, max_size=3).map(",".join),
    )
)
def test_weekdays_are_those_that_celery_expands_to(text: str) -> None:
    """Sunday is 0, a range may wrap, and steps count from its beginning."""
    expression = one(f"'schedule': crontab(minute=0, hour=0, day_of_week={text!r})").expression
    assert set(parse(expression).weekday.values) == expanded(text)


def expanded(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = ("0", "", "6") if span == "*" else span.partition("-")
        low, high = int(first), int(last or first)
        days = [*range(low, high + 1)] if low <= high else [*range(low, 7), *range(high + 1)]
        found |= set(days[:: int(step or 1)])
    return found


@pytest.mark.parametrize(
    ("written", "expression", "seconds"),
    [
        ("30.0", "@every 30s", 30),
        ("6 * 3600", "@every 6h", 21_600),
        ("dt.timedelta(minutes=90)", "@every 90m", 5_400),
        ("timedelta(days=1) + timedelta(seconds=1)", "@every 86401s", 86_401),
        ("schedule(run_every=60)", "@every 1m", 60),
        ("schedule(timedelta(hours=2))", "@every 2h", 7_200),
    ],
)
def test_an_interval_is_elapsed_time(written: str, expression: str, seconds: float) -> None:
    found = one(f"'schedule': {written}")
    assert (found.expression, found.interval_s) == (expression, seconds)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("solar('sunset', -37.8, 144.9)", "the sun's hours are no schedule here"),
        ("crontab(0, 9, 1)", "differs between versions of Celery"),
        ("crontab(hour='5/2')", "refused by Celery too"),
        ("crontab(day_of_week=7)", "write 0 to 6"),
        ("crontab(hour='noon')", "write 0 to 23"),
        ("crontab(second=5)", "crontab has no second"),
        ("crontab(minute=None)", "no field of crontab"),
        ("0.5", "no whole number of seconds"),
        ("-5", "no whole number of seconds"),
        ("schedule(run_every=5, relative=True)", "relative=True rounds"),
        ("crontab(nowfun=clock)", "its nowfun is a function"),
        ("crontab(minute=0, hour=0, day_of_month=30, month_of_year=2)", "never comes due"),
        ("HOURS[day]", "has a value only when the program runs"),
        ("5 * unknown", "`unknown` has a value only when"),
        ("'hourly'", "neither crontab(…) nor an interval"),
        ("10 ** 10 ** 10", "has a value only when"),
    ],
)
def test_what_cannot_be_said_needs_a_person_with_its_line(written: str, why: str) -> None:
    assert why in lost(f"'schedule': {written}")


@pytest.mark.parametrize(
    "entry",
    [
        r"'schedule': 60, 'kwargs': {'a': '\ud800'}",
        r"'schedule': 60, 'options': {'queue': '\ud800'}",
        "'schedule': 60, 'kwargs': {'a': float('nan')}",
        "'schedule': 60, 'kwargs': {'a': 1e999}",
        "'schedule': 60, 'kwargs': {'a': timedelta(1)}",
        "'schedule': 60, 'kwargs': {'a': b'x'}",
    ],
)
def test_what_no_file_can_hold_needs_a_person(entry: str) -> None:
    assert lost(entry)


def test_an_entry_whose_runs_are_rounded_needs_a_person() -> None:
    assert "relative=True rounds" in lost("'schedule': 60, 'relative': True")
    assert one("'schedule': 60, 'relative': False").needs == ()


def test_a_clock_that_names_one_zone_is_that_zone() -> None:
    clock = "lambda: dt.datetime.now(pytz.timezone('Asia/Seoul'))"
    assert one(f"'schedule': crontab(minute=0, nowfun={clock})").tz == "Asia/Seoul"


# What ---------------------------------------------------------------------------------------


def test_options_are_those_of_a_schedule_or_noted_or_a_need() -> None:
    found = one(
        "'schedule': 60, 'kwargs': {'n': [1, None]}, 'options': {'queue': 'high', 'priority': 3,"
        "'expires': 3600, 'time_limit': 20, 'soft_time_limit': 10, 'routing_key': 'x',"
        "'retry': False}, 'enabled': False"
    )
    assert found.runs == KindCall(kind="shop.a", args={"n": [1, None]})
    assert found.options == Options(
        queue="high", priority=3, catchup_window_s=3600.0, timeout_s=20.0, paused=True
    )
    assert [each.text.split(":")[0].split(" has")[0] for each in found.needs] == [
        *("priority 3", "the option routing_key")
    ]
    assert any("expires 3600" in note for note in found.notes)


@pytest.mark.parametrize(
    "options", ["{'queue': 5}", "{'time_limit': 'long'}", "{'countdown': later}", "nothing"]
)
def test_an_option_that_is_not_understood_loses_the_entry(options: str) -> None:
    lost(f"'schedule': 60, 'options': {options}")


def test_arguments_without_names_are_written_down_but_not_run() -> None:
    found = one("'schedule': 60, 'args': (86400,)")
    assert not found.holds
    assert "args (86400,) have no names" in found.needs[0].text


def test_arguments_get_the_names_of_a_function_in_the_same_file() -> None:
    read = findings(
        """
@app.task(name="mail.send", bind=True)
def send(self, to, *, subject="x"): ...
@shared_task
def clean(days, deep): ...
BEAT = {"task": "mail.send", "schedule": 60, "args": ["a"]}
app.conf.beat_schedule = {
    "a": BEAT,
    "b": {"task": "beat.clean", "schedule": 60, "args": (5,), "kwargs": {"deep": True}},
    "c": {"task": "beat.clean", "schedule": 60, "args": (1, 2, 3)},
}
"""
    )
    assert [each.runs for each in read.found[:2]] == [
        KindCall(kind="mail.send", args={"to": "a"}),
        KindCall(kind="beat.clean", args={"days": 5, "deep": True}),
    ]
    assert [each.holds for each in read.found] == [True, True, False]


def test_comments_on_and_above_an_entry_go_with_it() -> None:
    read = findings(
        """
app.conf.beat_schedule = {
    # every night,
    # at two
    "a": {"task": "a", "schedule": crontab(hour=2, minute=0)},  # UTC
    "b": {"task": "b", "schedule": 60},
}
"""
    )
    assert [each.comment for each in read.found] == ["every night,\nat two\nUTC", ""]
    assert [each.line for each in read.found] == [11, 12]


# Where --------------------------------------------------------------------------------------

ENTRY = "{'task': 't', 'schedule': 60}"
FORMS = {
    "assigned": f"app.conf.beat_schedule = {{'a': {ENTRY}, 'b': {ENTRY}}}",
    "settings": f"CELERY_BEAT_SCHEDULE: dict = {{'a': {ENTRY}, 'b': {ENTRY}}}",
    "old name": f"CELERYBEAT_SCHEDULE = dict(a={ENTRY}, b=dict(task='t', schedule=60))",
    "updated": f"app.conf.update(timezone='UTC', beat_schedule={{'a': {ENTRY}, 'b': {ENTRY}}})",
    "a dictionary": f"app.conf.update({{'beat_schedule': {{'a': {ENTRY}, 'b': {ENTRY}}}}})",
    "by entries": f"app.conf.beat_schedule = {{}}\napp.conf.beat_schedule['a'] = {ENTRY}\n"
    f"app.conf.beat_schedule.update({{'b': {ENTRY}}})",
    "a table of its own": f"JOBS = {{'a': {ENTRY}}}\nJOBS['b'] = {ENTRY}\n"
    "app.conf.beat_schedule = JOBS",
    "spread": f"A = {{'a': {ENTRY}}}\nCELERY_BEAT_SCHEDULE = {{**A, 'b': {ENTRY}}}",
    "joined": f"CELERY_BEAT_SCHEDULE = {{'a': {ENTRY}}}\nCELERY_BEAT_SCHEDULE |= {{'b': {ENTRY}}}",
    "a class": f"class Config:\n    beat_schedule = {{'a': {ENTRY}, 'b': {ENTRY}}}",
    "a loop": "for name in ('a', 'b'):\n"
    "    app.conf.beat_schedule[name] = {'task': 't', 'schedule': 60}",
    "a function": f"def setup():\n    app.conf['beat_schedule'] = {{'a': {ENTRY}, 'b': {ENTRY}}}",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_writing_a_schedule_is_read(form: str) -> None:
    read = findings(FORMS[form])
    assert [(each.name, each.expression) for each in read.found] == [
        *(("a", "@every 1m"), ("b", "@every 1m"))
    ]
    assert read.needs == ()


def test_periodic_tasks_are_read_with_their_signatures() -> None:
    read = findings(
        """
from shop.tasks import report
@app.on_after_configure.connect
def setup(sender, **kwargs):
    sender.add_periodic_task(10.0, hello.s("world"), name="every ten")
    sender.add_periodic_task(crontab(hour=7, minute=30), report.si(day="mon"), queue="low")
    sender.add_periodic_task(60, app.signature("x.y", kwargs={"a": 1}))
    sender.add_periodic_task(60, sender.tasks["x"].s())

@app.task
def hello(name): ...
"""
    )
    assert [(each.name, each.runs) for each in read.found] == [
        ("every ten", KindCall(kind="beat.hello", args={"name": "world"})),
        ("shop.tasks.report", KindCall(kind="shop.tasks.report", args={"day": "mon"})),
    ]
    assert read.found[1].options.queue == "low"
    assert [each.line for each in read.needs] == [13, 14]


@pytest.mark.parametrize(
    ("text", "tz"),
    [
        ("", "UTC"),
        ("app.conf.timezone = 'Asia/Riyadh'", "Asia/Riyadh"),
        ("CELERY_TIMEZONE = 'Asia/Riyadh'", "Asia/Riyadh"),
        ("app.conf.update(timezone='Asia/Riyadh', enable_utc=False)", "Asia/Riyadh"),
        ("from zoneinfo import ZoneInfo\ntimezone = ZoneInfo('Asia/Riyadh')", "Asia/Riyadh"),
        ("app = Celery('x', timezone='Asia/Riyadh')", "Asia/Riyadh"),
        ("enable_utc = False", None),
        ("enable_utc = []", "UTC"),
    ],
)
def test_the_zone_follows_celerys_rule(text: str, tz: str | None) -> None:
    assert findings(text).default_tz == tz


def test_a_zone_that_is_not_one_is_said() -> None:
    read = findings("if x:\n    CELERY_TIMEZONE = 'UTC'\nelse:\n    CELERY_TIMEZONE = 'Asia/Seoul'")
    assert read.default_tz is None
    assert "timezone is set to Asia/Seoul, UTC" in read.needs[0].text
    (needs,) = findings("CELERY_TIMEZONE = os.environ['TZ']").needs
    assert "has a value only when the program runs" in needs.text


def test_entries_that_cannot_be_followed_are_never_passed_over() -> None:
    for text in ("app.conf.beat_schedule = load()", "CELERY_BEAT_SCHEDULE = {k: v for k in x}"):
        assert [each.line for each in findings(text).needs] == [7]
    assert len(findings("app.conf.beat_schedule = {'a': {'task': 'x'}, 'b': 5}").needs) == 2


def test_two_entries_of_one_name_stay_two() -> None:
    text = f"app.conf.beat_schedule = {{'a': {ENTRY}}}\napp.conf.beat_schedule['a'] = {ENTRY}"
    assert [each.name for each in findings(text).found] == ["a", "a-2"]


# Safety -------------------------------------------------------------------------------------


def test_nothing_is_imported_or_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    text = f"""
open({str(trace)!r}, "w").write("x")
import antigravity_of_that_name
app.conf.beat_schedule = {{
    "a": {{"task": "x", "schedule": 60, "args": [__import__("os").system("touch {trace}")]}},
    "b": {{"task": "x", "schedule": 60}},
}}
raise SystemExit(9)
"""
    read = findings(text)
    assert [each.name for each in read.found] == ["b"]
    assert not trace.exists()


BOMBS: dict[str, Any] = {
    "too long": "x" * (1 << 21),
    "brackets": "x = " + "(" * 100_000,
    "signs": "x = " + "-" * 100_000 + "1",
    "a sum": "x = " + "+".join(["1"] * 50_000),
    "no Python": "def f(:",
    "NUL": "x = 1\0",
    "loops": "\n".join(f"{' ' * n}for x{n} in (1, 2, 3, 4, 5, 6, 7, 8, 9):" for n in range(20))
    + "\n"
    + " " * 20
    + "app.conf.beat_schedule['a'] = 1",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_words(bomb: str) -> None:
    with pytest.raises(UsageError, match=r": write|it is not Python|: move|nested too deep"):
        celery_findings(BOMBS[bomb], source="x.py")


@pytest.mark.parametrize(
    "value",
    [
        "[" * 60 + "1" + "]" * 60,
        "+".join(["1"] * 400),
        "'a' * 10 ** 9",
        "a0",
    ],
)
def test_a_value_that_is_a_bomb_is_not_computed(value: str) -> None:
    names = "".join(f"a{n} = a{n + 1}\n" for n in range(200)) + "a200 = a0\n"
    read = findings(
        f"{names}app.conf.beat_schedule = {{'a': {{'task': 'x', 'schedule': {value}}}}}"
    )
    assert read.found == ()
    assert len(read.needs) == 1


def test_secrets_in_arguments_are_not_shown() -> None:
    found = one("'schedule': 60, 'kwargs': {'api_key': 'hunter2'}, 'args': ['password=hunter2']")
    assert "hunter2" not in found.text + str(found.needs)
