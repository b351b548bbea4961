"""Kubernetes CronJobs: what they say, what a command elsewhere will miss, and no bombs."""

from __future__ import annotations

import pytest

from timeball.errors import UsageError
from timeball.importers.found import CommandCall, Findings, Found, Options
from timeball.importers.kubernetes import kubernetes_findings
from timeball.importers.yaml_text import read_yaml

JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {{ name: {name} }}
spec:
  schedule: {schedule}
  {spec}
  jobTemplate:
    spec:
      {job}
      template:
        spec:
          {pod}
          containers: [{{ name: main, image: "tool:1", {container} }}]
"""
COMMAND = 'command: ["/bin/sh", "-c", "backup.sh"]'


def manifest(**parts: str) -> str:
    usual = {
        "name": "nightly",
        "schedule": '"0 2 * * *"',
        "container": COMMAND,
        **dict.fromkeys(("spec", "job", "pod"), "# nothing"),
    }
    return JOB.format(**usual | parts)


def findings(text: str) -> Findings:
    return kubernetes_findings(text, source="/srv/cron.yaml")


def one(**parts: str) -> Found:
    (found,) = findings(manifest(**parts)).found
    return found


def lost(**parts: str) -> str:
    read = findings(manifest(**parts))
    assert read.found == ()
    (needs,) = read.needs
    assert needs.name == "nightly"
    return needs.text


def test_a_cronjob_is_a_command_with_its_retries_and_bounds() -> None:
    found = one(
        spec="{timeZone: Asia/Shanghai, concurrencyPolicy: Forbid, startingDeadlineSeconds: 300}"[
            1:-1
        ].replace(", ", "\n  "),
        job="backoffLimit: 2\n      activeDeadlineSeconds: 3600",
    )
    assert (found.name, found.expression, found.tz) == ("nightly", "0 2 * * *", "Asia/Shanghai")
    assert found.runs == CommandCall(argv=("/bin/sh", "-c", "backup.sh"))
    assert found.options == Options(
        max_retries=2, timeout_s=3600.0, overlap_runs="skip", catchup_window_s=300.0
    )
    assert found.guard == "concurrencyPolicy: Forbid"
    assert found.defaulted == {"suspend"}


def test_what_is_not_given_is_kubernetes_own() -> None:
    found = one()
    assert found.options == Options(max_retries=6)
    assert found.tz is None
    assert findings(manifest()).default_tz == "UTC"
    assert found.defaulted == {
        *("timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend", "backoffLimit")
    }


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("concurrencyPolicy: Replace", {"overlap_runs": "replace"}),
        ("concurrencyPolicy: Allow", {}),
        ("suspend: true", {"paused": True}),
        ("suspend: false", {}),
    ],
)
def test_policies_are_options(spec: str, options: dict[str, object]) -> None:
    assert one(spec=spec).options == Options(max_retries=6, **options)  # type: ignore[arg-type]  # a test's own


@pytest.mark.parametrize(
    ("schedule", "expression", "tz", "seconds"),
    [
        ('"CRON_TZ=Asia/Tokyo 0 2 * * *"', "0 2 * * *", "Asia/Tokyo", None),
        ("TZ=UTC @daily", "@daily", "UTC", None),
        ('"@every 1h30m"', "@every 1h30m", None, 5_400),
        ("'*/5 * * * ?'", "*/5 * * * ?", None, None),
    ],
)
def test_schedules_keep_their_zone_and_interval(
    schedule: str, expression: str, tz: str | None, seconds: float | None
) -> None:
    found = one(schedule=schedule)
    assert (found.expression, found.tz, found.interval_s) == (expression, tz, seconds)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"schedule": "5"}, "has no schedule"),
        ({"schedule": '"0 2 30 2 *"'}, "never comes due"),
        ({"schedule": '"61 * * * *"'}, "minute field"),
        ({"schedule": '"@every 500ms"'}, "no whole number of seconds"),
        ({"schedule": '"TZ=UTC @daily"', "spec": "timeZone: Asia/Tokyo"}, "write one of them"),
        ({"spec": "timeZone: Mars/Olympus"}, "Mars/Olympus"),
        ({"spec": "concurrencyPolicy: Never"}, "write Allow, Forbid, Replace"),
        ({"spec": "concurrencyPolicy: []"}, "write Allow, Forbid, Replace"),
        ({"job": "backoffLimit: many"}, "no whole number"),
        ({"container": "args: [x]"}, "hidden in the image tool:1"),
        ({"container": "command: [1]"}, "put each word in quotes"),
        ({"container": COMMAND + ", env: [{value: x}]"}, "an entry without a name"),
    ],
)
def test_what_cannot_be_said_needs_a_person(parts: dict[str, str], why: str) -> None:
    assert why in lost(**parts)


def test_the_image_and_all_around_a_container_need_a_person_with_the_line() -> None:
    found = one(
        pod="volumes: []\n          initContainers: [x]",
        job="parallelism: 2",
        container='command: [a, "$(HOME)"], workingDir: /srv, envFrom: [x], env: ['
        "{name: A, value: b}, {name: KEY, valueFrom: {secretKeyRef: {name: k}}}]",
    )
    assert found.runs == CommandCall(argv=("a", "$(HOME)"), cwd="/srv", env={"A": "b"})
    assert {each.line for each in found.needs} == {5}
    around, missing, variables = (each.text for each in found.needs)
    assert around.startswith("it ran in the image tool:1")
    assert missing == (
        "it had env KEY, envFrom, initContainers, parallelism: "
        "give the command what it needs of them"
    )
    assert "fills in $(NAME)" in variables


def test_only_the_first_of_several_containers_is_taken() -> None:
    text = manifest().replace("tool:1", 'tool:1", command: [a] }, { name: side, image: "x')
    (found,) = findings(text).found
    assert "only its first container is taken; these are not: side" in found.needs[1].text


def test_documents_and_lists_are_read_and_other_manifests_passed_over() -> None:
    inner = manifest(name="c").replace("\n", "\n  ")
    text = "\n---\n".join(
        [
            manifest(name="a"),
            "kind: Service\nmetadata: {name: x}",
            manifest(name="b"),
            f"kind: List\nitems:\n- {inner}",
        ]
    )
    read = findings(text)
    assert [each.name for each in read.found] == ["a", "b", "c"]
    assert [text.split("\n")[each.line - 1].strip()[:9] for each in read.found] == ["schedule:"] * 3


def test_a_comment_on_the_schedule_goes_with_it() -> None:
    assert one(schedule='"0 2 * * *"  # 2 AM in Paris').comment == "2 AM in Paris"


# YAML ---------------------------------------------------------------------------------------

BILLION = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BILLION, "more of it than a person would write"),
        ("a: &a [*a]", "more of it than a person would write"),
        ("[" * 100_000, "nested too deep"),
        ("- " * 50_000, "nested too deep"),
        ("a: {" * 80 + "}" * 80, "nested too deep"),
        ("#" * (1 << 21), "split it"),
        ("a: !!python/object/apply:os.system ['true']", "is not followed"),
        ("a: !custom x", "line 1: the tag !custom is not followed"),
        ("b: 1\na: {<<: {x: 1}}", "line 2: << is not followed"),
        ("a: *b", "line 1: it is not YAML"),
        ("a: [1\n", "it is not YAML"),
        ("\0", "it is not YAML"),
        ("? [a]\n: b", "line 1: a key is no text"),
    ],
)
def test_no_text_makes_more_than_stands_in_it(text: str, why: str) -> None:
    with pytest.raises(UsageError) as told:
        read_yaml(text)
    assert why in str(told.value)


def test_values_are_plain() -> None:
    text = "a: [1, true, 1.5, null, 2026-01-01, 'x']\nb: &x {c: d}\ne: *x\n---\n5\n"
    assert read_yaml(text) == [
        {"a": [1, True, 1.5, None, "2026-01-01", "x"], "b": {"c": "d"}, "e": {"c": "d"}},
        5,
    ]


def test_a_table_knows_its_lines() -> None:
    (table,) = read_yaml("a:\n  b:\n    c: 1\n")
    assert table.table("a", "b").line_of("c") == 3
    assert table.table("a", "x").line_of("c") == 1
    assert table.line_of("a") == 1
