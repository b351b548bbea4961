"""Decorated functions stay functions, and become kinds that say what is wrong with them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from timeball.action.context import Context
from timeball.action.kind import Kind
from timeball.action.registry import DEFAULT, OCCURRENCE_KEY, Registry, cron, job, kind_of
from timeball.core.records import Delivery
from timeball.core.retry import Retry
from timeball.errors import InvalidPayload, InvalidSchedule, UnknownKind, UsageError

if TYPE_CHECKING:
    import timeball as unloaded


@job(queue="mail", retry=Retry(5, on=(OSError,)), timeout_s=30, priority=7)
def welcome(user: int) -> str:
    return f"welcome {user}"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_a_decorated_function_is_still_that_function() -> None:
    assert welcome(7) == "welcome 7"
    assert welcome.__name__ == "welcome"
    assert pickle.loads(pickle.dumps(welcome)) is welcome


def test_a_kind_has_the_options_of_its_definition() -> None:
    kind = kind_of(welcome)
    assert kind is DEFAULT[f"{__name__}.welcome"]
    assert (kind.queue, kind.timeout_s, kind.priority) == ("mail", 30, 7)
    assert kind.retry == Retry(5, on=(OSError,))
    assert kind.call is welcome
    assert not kind.is_async
    assert kind.place.startswith(__file__)


def test_job_needs_no_brackets(registry: Registry) -> None:
    @registry.job
    async def plain() -> None: ...

    kind = registry.kind_of(plain)
    assert kind.is_async
    assert kind == registry[kind.name]
    assert kind.name.endswith(".plain")
    assert "<locals>" not in kind.name


def test_what_is_not_registered_says_what_to_do(registry: Registry) -> None:
    registry.job(name="mail.welcome")(welcome)
    with pytest.raises(UnknownKind, match=r"did you mean 'mail\.welcome'"):
        registry.kind_of("mail.welcom")
    with pytest.raises(UnknownKind, match="import the module"):
        registry.kind_of("x")
    with pytest.raises(UnknownKind, match="decorate it with @job"):
        registry.kind_of(pickle.dumps)


def test_one_name_is_one_place_and_both_are_told(registry: Registry) -> None:
    def first() -> None: ...
    def second() -> None: ...

    registry.job(name="same")(first)
    with pytest.raises(UsageError, match="two kinds are named 'same'") as caught:
        registry.job(name="same")(second)
    for function in (first, second):
        assert f"{__file__}:{function.__code__.co_firstlineno}" in str(caught.value)
    assert registry["same"].call is first


def test_a_module_that_is_loaded_again_replaces_its_own_kinds(registry: Registry) -> None:
    def define() -> Any:
        @registry.job(name="again")
        def again() -> None: ...

        return again

    define()
    newest = define()
    assert len(registry) == 1
    assert registry["again"].call is newest


def plus(*extra: int, a: int, b: int = 2, **more: int) -> int:
    return a + b + sum(extra) + sum(more.values())


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"queue": ""}, "queue is ''"),
        ({"queue": 3}, "queue is 3"),
        ({"queue": "a\0b"}, "printable"),
        ({"name": "x" * 300}, "256 bytes"),
        ({"timeout_s": 0}, "above 0"),
        ({"timeout_s": float("nan")}, "above 0"),
        ({"priority": 10}, "0 to 9"),
        ({"priority": True}, "0 to 9"),
        ({"max_crashes": 0}, "1 or more"),
        ({"delivery": "twice"}, "'at_most_once'"),
        ({"delivery": "at_most_once", "retry": Retry(1)}, "Retry(0)"),
        ({"retries": 3}, "it has queue, retry"),
    ],
)
def test_a_wrong_option_is_told_at_the_definition(
    registry: Registry, options: dict[str, Any], word: str
) -> None:
    with pytest.raises(UsageError) as caught:
        registry.job(**options)(plus)
    assert word in str(caught.value)
    assert not registry


def test_at_most_once_has_no_retries(registry: Registry) -> None:
    registry.job(name="once", delivery="at_most_once")(plus)
    assert registry["once"].delivery is Delivery.AT_MOST_ONCE
    assert registry["once"].retry.max_retries == 0


def by_position(a: int, /) -> None: ...
def generator() -> Any:
    yield 1


async def async_generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (by_position, "remove the /"),
        (generator, "returns its result"),
        (async_generator, "returns its result"),
        (lambda: None, "no name of its own"),
    ],
)
def test_what_cannot_be_a_job_is_told_at_the_definition(
    registry: Registry, call: Any, word: str
) -> None:
    with pytest.raises(UsageError, match=word):
        registry.job(call)


# Arguments and the context


def test_arguments_are_checked_against_the_function(registry: Registry) -> None:
    @registry.job(name="f")
    def f(a: int, b: int = 2) -> None: ...

    kind = registry["f"]
    assert kind.encode({"a": 1}) == '{"a":1}'
    with pytest.raises(UsageError, match="missing: a"):
        kind.encode({"b": 1})
    with pytest.raises(UsageError, match="not a parameter: c"):
        kind.encode({"a": 1, "c": 1})
    with pytest.raises(UsageError, match="reserved"):
        kind.encode({"a": 1, OCCURRENCE_KEY: {}})
    with pytest.raises(InvalidPayload, match="lone surrogate"):
        kind.encode({"a": "\ud800"})


def test_other_names_are_taken_where_the_function_takes_them(registry: Registry) -> None:
    registry.job(name="plus")(plus)
    assert registry["plus"].encode({"a": 1, "z": 3}) == '{"a":1,"z":3}'
    with pytest.raises(UsageError, match="missing: a"):
        registry["plus"].encode({"z": 3})


def as_text(a: int, ctx: Context) -> None: ...
def as_option(ctx: Context | None = None) -> None: ...
def as_dotted(ctx: unloaded.Context) -> None: ...
def as_other(ctx: Path, context: int) -> None: ...


def as_object(ctx: Context) -> None: ...


as_object.__annotations__["ctx"] = Context  # as without `from __future__ import annotations`


class Elsewhere:
    class Context:
        """Of the same name, and not ours."""


def as_namesake(ctx: Elsewhere.Context) -> None: ...


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (as_text, "ctx"),
        (as_option, "ctx"),
        (as_dotted, "ctx"),
        (as_object, "ctx"),
        (as_other, None),
        (as_namesake, None),
    ],
)
def test_the_context_goes_where_the_annotation_asks_for_it(
    registry: Registry, call: Any, parameter: str | None
) -> None:
    registry.job(name="f")(call)
    kind = registry["f"]
    assert kind.context_parameter == parameter
    assert parameter not in kind.parameters.accepted


def test_two_contexts_are_one_too_many(registry: Registry) -> None:
    def greedy(a: Context, b: Context) -> None: ...

    with pytest.raises(UsageError, match="keep one"):
        registry.job(greedy)


# Schedules


def test_schedules_stack_above_and_below_job(registry: Registry) -> None:
    @registry.cron("0 8 * * *", tz="Europe/Paris", args={"a": 1})
    @registry.job(name="report", queue="slow")
    @registry.cron("*/5 * * * *", catchup="none", name="often", args={"a": 2})
    def report(a: int) -> int:
        return a

    assert report(3) == 3
    kind = registry["report"]
    assert list(registry) == ["report"]
    assert kind.queue == "slow"
    often, daily = kind.schedules
    assert (often.name, often.expression, often.tz, often.catchup) == (
        "often", "*/5 * * * *", "UTC", "none",
    )  # fmt: skip
    assert (often.gap, often.overlap) == ("skip", "both")
    assert (daily.name, daily.tz, daily.args) == ("report-2", "Europe/Paris", '{"a":1}')
    assert (daily.gap, daily.overlap) == ("next_valid", "first")


def test_a_schedule_alone_makes_a_kind_and_is_named_after_it(registry: Registry) -> None:
    @registry.job(name="late")
    @registry.cron("@hourly")
    def early() -> None: ...

    @registry.cron("@daily")
    def alone() -> None: ...

    assert [spec.name for spec in registry["late"].schedules] == ["late"]
    kind = registry.kind_of(alone)
    assert [spec.name for spec in kind.schedules] == [kind.name]


@pytest.mark.parametrize(
    ("expression", "options", "error"),
    [
        ("61 * * * *", {}, InvalidSchedule),
        ("0 0 30 2 *", {}, InvalidSchedule),
        ("* * * * *", {"tz": "Europe/Pari"}, InvalidSchedule),
        ("* * * * *", {"gap": "jump"}, UsageError),
        ("* * * * *", {"catchup": "some"}, UsageError),
        ("* * * * *", {"zone": "UTC"}, UsageError),
        ("* * * * *", {"args": {"b": 1}}, UsageError),
    ],
)
def test_a_wrong_schedule_is_told_at_the_definition(
    registry: Registry, expression: str, options: dict[str, Any], error: type[Exception]
) -> None:
    def call() -> None: ...

    with pytest.raises(error):
        registry.cron(expression, **options)(call)
    assert not any(kind.schedules for kind in registry.values())


def test_the_decorators_of_the_package_share_one_registry() -> None:
    @cron("@daily")
    def shared() -> None: ...

    assert kind_of(shared).name in DEFAULT


# Loading

APP = """
import timeball.action.registry as tb

@tb.DEFAULT.job
def f(): ...
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a name that no other test uses; what it registers is forgotten."""
    path = tmp_path / f"app_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(APP)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(DEFAULT, "_kinds", dict(DEFAULT._kinds))
    return path


def test_a_file_is_imported_as_a_module(app: Path) -> None:
    assert [kind.name for kind in DEFAULT.load(str(app))] == [f"{app.stem}.f"]
    assert str(app.parent) in sys.path


def test_a_file_that_was_loaded_before_gives_its_kinds_again(app: Path) -> None:
    assert DEFAULT.load(str(app)) == DEFAULT.load(str(app))


def test_a_module_is_found_in_the_current_folder(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(app.parent)
    assert [kind.name for kind in DEFAULT.load(app.stem)] == [f"{app.stem}.f"]


def test_an_import_error_is_told_with_its_cause(app: Path) -> None:
    app.write_text("import no_such_module_at_all")
    with pytest.raises(UsageError, match=r"ModuleNotFoundError: .*no_such_module") as caught:
        DEFAULT.load(str(app))
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_module_that_exits_does_not_end_the_program(app: Path) -> None:
    app.write_text("raise SystemExit(3)")
    with pytest.raises(UsageError, match="SystemExit: 3"):
        DEFAULT.load(str(app))


def test_what_cannot_be_loaded_says_what_to_write(app: Path) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        DEFAULT.load(str(app.parent / "none.py"))
    with pytest.raises(UsageError, match="cannot be imported"):
        DEFAULT.load("no_such_module_at_all")
    dashed = app.with_name("my-app.py")
    dashed.write_text("")
    with pytest.raises(UsageError, match="rename it"):
        DEFAULT.load(str(dashed))
    shadow = app.with_name("json.py")
    shadow.write_text("")
    with pytest.raises(UsageError, match=r"json.*has that name"):
        DEFAULT.load(str(shadow))


@pytest.mark.slow
def test_a_function_is_named_alike_whether_its_file_is_run_or_imported(app: Path) -> None:
    app.write_text(APP + "print(tb.kind_of(f).name)")
    done = subprocess.run([sys.executable, app], capture_output=True, check=True, text=True)
    assert done.stdout == f"{app.stem}.f\n"


def test_a_kind_is_frozen(registry: Registry) -> None:
    registry.job(name="plus")(plus)
    kind: Kind = registry["plus"]
    with pytest.raises(AttributeError):
        kind.name = "other"  # type: ignore[misc]  # that is the point


def test_one_function_may_be_two_kinds(registry: Registry) -> None:
    registry.job(name="quick", priority=9)(plus)
    registry.job(name="slow", priority=0)(plus)
    assert [(kind.name, kind.priority) for kind in registry.values()] == [("quick", 9), ("slow", 0)]


def test_a_runner_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="write 'thread' or 'process'"):
        Registry().job(runner="processes")(welcome)  # type: ignore[call-overload]  # as some would


def test_what_is_async_has_no_process_apart() -> None:
    async def waits() -> None: ...

    with pytest.raises(UsageError, match="write it with def, or leave out runner"):
        Registry().job(name="waits", runner="process")(waits)
