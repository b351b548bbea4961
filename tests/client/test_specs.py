"""Every mistake of a caller is told before a store is asked."""

import math
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from tests.client.jobs import add, asks, clash, once

from timeball.action.job_specs import job_spec
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.records import Delivery
from timeball.core.uniqueness import OnClash, Unique, UniqueScope, UniqueUntil
from timeball.errors import InvalidPayload, InvalidSchedule, UnknownKind, UsageError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_job_takes_its_options_from_its_definition() -> None:
    spec = job_spec(add, {"a": 1})
    assert (spec.kind, spec.queue, spec.priority, spec.max_retries) == ("client.add", "sums", 7, 2)
    assert (spec.timeout_s, spec.args, spec.run_at) == (9.0, '{"a":1}', None)


def test_the_call_overrules_the_definition() -> None:
    spec = job_spec(add, {"a": 1, "queue": "q", "priority": 0, "max_retries": 9, "timeout_s": 1})
    assert (spec.queue, spec.priority, spec.max_retries, spec.timeout_s) == ("q", 0, 9, 1)


def test_a_kind_that_only_workers_know_goes_by_its_name() -> None:
    spec = job_spec("elsewhere.run", {"any": "thing"})
    assert (spec.kind, spec.queue, spec.args) == ("elsewhere.run", "default", '{"any":"thing"}')


def test_a_known_name_is_as_good_as_its_function() -> None:
    assert job_spec("client.add", {"a": 1}).queue == "sums"
    with pytest.raises(UsageError, match="cannot be called like this"):
        job_spec("client.add", {"c": 1})


def test_the_context_is_not_the_callers_to_give() -> None:
    assert job_spec(asks, {"a": 1}).args == '{"a":1}'
    with pytest.raises(UsageError):
        job_spec(asks, {"a": 1, "ctx": 2})


def test_an_instant_is_kept_in_utc_whatever_its_zone() -> None:
    at = NOON.astimezone(timezone(timedelta(hours=5)))
    assert job_spec(add, {"a": 1, "run_at": at}).run_at == NOON


def test_a_delay_is_left_to_the_clock_of_the_store() -> None:
    spec = job_spec(add, {"a": 1, "delay_s": 60})
    assert (spec.run_at, spec.delay_s) == (None, 60.0)


def test_what_runs_at_most_once_has_no_retries() -> None:
    spec = job_spec(once, {})
    assert (spec.delivery, spec.max_retries) == (Delivery.AT_MOST_ONCE, 0)
    assert job_spec(add, {"a": 1, "delivery": "at_most_once"}).max_retries == 0


def test_arguments_may_be_given_apart_from_options() -> None:
    spec = job_spec(clash, {"args": {"queue": "inner"}, "queue": "outer"})
    assert (spec.args, spec.queue) == ('{"queue":"inner"}', "outer")


def test_a_uuid_may_be_given_as_text() -> None:
    assert job_spec(add, {"a": 1, "uuid": str(UUID(int=5))}).uuid == UUID(int=5)


@pytest.mark.parametrize(
    ("job", "arguments", "error", "advice"),
    [
        (add, {}, UsageError, "cannot be called like this"),
        (add, {"a": 1, "c": 2}, UsageError, "cannot be called like this"),
        (add, {"a": math.nan}, InvalidPayload, "args.a is nan"),
        (add, {"a": 1, "args": {}}, UsageError, "put it into args="),
        (add, {"args": [1]}, UsageError, "pass a dictionary"),
        (add, {"a": 1, "priority": 10}, UsageError, "a whole number from 0 to 9"),
        (add, {"a": 1, "priority": True}, UsageError, "a whole number from 0 to 9"),
        (add, {"a": 1, "max_retries": -1}, UsageError, "a whole number from 0"),
        (add, {"a": 1, "max_crashes": 0}, UsageError, "a whole number from 1"),
        (add, {"a": 1, "timeout_s": 0}, UsageError, "write seconds"),
        (add, {"a": 1, "timeout_s": "5"}, UsageError, "write seconds"),
        (add, {"a": 1, "delay_s": math.nan}, UsageError, "write seconds"),
        (add, {"a": 1, "delay_s": -1}, UsageError, "write seconds"),
        (add, {"a": 1, "delay_s": 1, "run_at": NOON}, UsageError, "pass one of them"),
        (add, {"a": 1, "run_at": datetime(2026, 1, 1)}, UsageError, "aware"),  # noqa: DTZ001 - naive
        (add, {"a": 1, "run_at": "tomorrow"}, UsageError, "aware"),
        (add, {"a": 1, "queue": ""}, UsageError, "1 to 256 bytes"),
        (add, {"a": 1, "queue": "a\0"}, UsageError, "printable"),
        (add, {"a": 1, "delivery": "maybe"}, UsageError, "'at_least_once' or"),
        (add, {"a": 1, "uuid": "x"}, UsageError, "pass a uuid.UUID"),
        (once, {"max_retries": 2}, UsageError, "no retries"),
        (clash, {"queue": "which"}, UsageError, "both an option and an argument"),
        ("", {}, UsageError, "kind ''"),
        ("k" * 300, {}, UsageError, "1 to 256 bytes"),
        ("kind", {"__occurrence__": 1}, UsageError, "reserved"),
        (add, {"a": 1, "__occurrence__": 1}, UsageError, "reserved"),
        (len, {}, UnknownKind, "decorate it"),
    ],
)
def test_a_mistake_is_told_with_what_to_write(job, arguments, error, advice: str) -> None:
    with pytest.raises(error, match=advice):
        job_spec(job, arguments)


def test_a_schedule_is_kept_in_its_canonical_form() -> None:
    spec = schedule_spec("s", add, cron="@daily", tz="Europe/Paris", args={"a": 1})
    assert (spec.expression, spec.gap, spec.overlap) == ("0 0 * * *", "next_valid", "first")
    assert agenda_of(spec).next(NOON) == datetime(2026, 3, 1, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "tz", "options", "error", "advice"),
    [
        ("61 * * * *", "UTC", {}, InvalidSchedule, "61"),
        ("0 0 30 2 *", "UTC", {}, InvalidSchedule, "30"),
        ("@daily", "Mars/Base", {}, InvalidSchedule, "Mars/Base"),
        ("@daily", "UTC", {"catchup": "some"}, UsageError, "'last', 'none' or 'all'"),
        ("@daily", "UTC", {"color": 1}, UsageError, "color: not an option"),
        ("@daily", "UTC", {"args": {"b": 1}}, UsageError, "cannot be called like this"),
    ],
)
def test_a_wrong_schedule_is_refused_whole(cron, tz, options, error, advice: str) -> None:
    args = options.pop("args", {"a": 1})
    with pytest.raises(error, match=advice):
        schedule_spec("s", add, cron=cron, tz=tz, args=args, **options)


def test_a_deadline_is_an_aware_instant_after_the_start() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert job_spec("a", {"expires_at": noon}).expires_at == noon
    assert job_spec("a", {}).expires_at is None
    with pytest.raises(UsageError, match="aware"):
        job_spec("a", {"expires_at": noon.replace(tzinfo=None)})
    with pytest.raises(UsageError, match="could never run"):
        job_spec("a", {"expires_at": noon, "run_at": noon})


def test_a_unique_key_has_a_scope_an_end_and_a_rule() -> None:
    assert job_spec("a", {"unique": "k"}).unique == Unique(key="k")
    chosen = {"unique_scope": "queue", "unique_until": "started", "on_clash": "replace"}
    unique = job_spec("a", {"unique": "k", **chosen}).unique
    assert unique == Unique(
        key="k", scope=UniqueScope.QUEUE, until=UniqueUntil.STARTED, on_clash=OnClash.REPLACE
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"unique": ""}, "printable"),
        ({"unique": 7}, "printable"),
        ({"unique": "\0"}, "printable"),
        ({"unique": "k" * 1_001}, "1,000 bytes"),
        ({"on_clash": "reject"}, "pass unique="),
        ({"unique": "k", "on_clash": "wait"}, "'ignore', 'reject', 'replace'"),
        ({"unique": "k", "unique_scope": "job"}, "'kind', 'queue', 'global'"),
    ],
)
def test_a_mistake_about_a_unique_key_is_told(options: dict, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        job_spec("a", options)
