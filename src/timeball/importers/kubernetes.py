"""Kubernetes CronJobs: the manifests of a YAML file, several documents and lists too.

What a container runs becomes a command on the worker's own machine, so each one needs a person:
neither its image nor its volumes nor its secrets are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from timeball.core.redaction import redacted
from timeball.errors import UsageError
from timeball.importers.found import CommandCall, Findings, Found, Options, Origin
from timeball.importers.gathering import Gathering, Timing, needs
from timeball.importers.yaml_text import Table, read_yaml

_ZONE_PREFIX = re.compile(r"(?:CRON_TZ|TZ)=(\S+)\s+(.*)", re.DOTALL)
_DURATION = re.compile(r"(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)
_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)$")
_VARIABLE: Final = "$("
_OVERLAP: Final = {"Allow": None, "Forbid": "skip", "Replace": "replace"}
_BACKOFF_DEFAULT: Final = 6
_DEFAULT_TZ: Final = "UTC"
_SPEC_DEFAULTS: Final = ("timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend")
# Of a container: what a command on another machine does not have.
_SURROUNDINGS: Final = (
    *("envFrom", "volumeMounts", "volumeDevices", "securityContext", "resources", "lifecycle"),
)
_POD_SURROUNDINGS: Final = (
    *("initContainers", "volumes", "serviceAccountName", "nodeSelector", "affinity"),
    *("tolerations", "securityContext", "hostNetwork", "imagePullSecrets"),
)


def kubernetes_findings(text: str, *, source: str) -> Findings:
    """Return the CronJobs of a file; other manifests in it are passed over.

    Args:
        text: The YAML.
        source: Its path.

    Raises:
        UsageError: It cannot be read at all.
    """
    out = Gathering(Origin.KUBERNETES, source)
    lines = text.split("\n")
    zones = set()
    for manifest in _manifests(read_yaml(text)):
        name = str(manifest.table("metadata").get("name") or "cronjob")
        with out.losing(manifest.line, name):
            found = _found(manifest, name, lines)
            zones.add(found.tz)
            out.add(found)
    if None in zones:
        out.note("no timeZone is named: the control plane's counts, which is UTC nearly everywhere")
    return out.findings(default_tz=_DEFAULT_TZ)


def _manifests(documents: list[Any]) -> Iterator[Table]:
    for each in documents:
        if not isinstance(each, Table):
            continue
        if each.get("kind") == "CronJob":
            yield each
        elif str(each.get("kind", "")).endswith("List"):
            yield from _manifests(each.get("items") or [])


def _found(manifest: Table, name: str, lines: list[str]) -> Found:
    spec = manifest.table("spec")
    job = spec.table("jobTemplate", "spec")
    timing = _timing(spec)
    command, remarks = _command(job)
    line = spec.line_of("schedule")
    return Found(
        name=name,
        expression=timing.expression,
        tz=timing.tz,
        runs=command,
        options=Options(
            max_retries=_whole(job, "backoffLimit", _BACKOFF_DEFAULT),
            timeout_s=_seconds(job, "activeDeadlineSeconds"),
            overlap_runs=_overlap(spec),
            catchup_window_s=_seconds(spec, "startingDeadlineSeconds"),
            paused=True if spec.get("suspend") is True else None,
        ),
        line=line,
        text=redacted(lines[line - 1].strip()),
        comment=_comment(lines, line),
        guard=None if _overlap(spec) is None else f"concurrencyPolicy: {spec['concurrencyPolicy']}",
        interval_s=timing.interval_s,
        defaulted=frozenset(
            {key for key in _SPEC_DEFAULTS if key not in spec} | ({"backoffLimit"} - job.keys())
        ),
        notes=tuple(_notes(spec, job)),
        needs=needs(line, name, remarks),
    )


def _timing(spec: Table) -> Timing:
    text = spec.get("schedule")
    if not isinstance(text, str):
        raise UsageError("its spec has no schedule: write one, in quotes")
    tz = spec.get("timeZone")
    if prefix := _ZONE_PREFIX.fullmatch(text.strip()):
        zone, text = prefix.groups()
        if tz is not None and tz != zone:
            raise UsageError(f"its schedule names {zone} and timeZone {tz}: write one of them")
        tz = zone
    if tz is not None and not isinstance(tz, str):
        raise UsageError(f"timeZone {tz!r} is no text: write a zone, such as Europe/Paris")
    text = " ".join(text.split())
    if not text.lower().startswith("@every"):
        return Timing(expression=text, tz=tz)
    found = _DURATION.fullmatch(text[len("@every") :].strip())
    hours, minutes, seconds = (int(part or 0) for part in (found.groups() if found else "000"))
    interval = 3600 * hours + 60 * minutes + seconds
    if interval == 0:
        raise UsageError(f"{text!r} is no whole number of seconds: write such as @every 1h30m")
    note = "@every counts from 1970 here, and from the last run in Kubernetes"
    return Timing(expression=text, tz=tz, interval_s=float(interval), notes=(note,))


def _overlap(spec: Table) -> str | None:
    policy = spec.get("concurrencyPolicy", "Allow")
    if not isinstance(policy, str) or policy not in _OVERLAP:
        raise UsageError(f"concurrencyPolicy {policy!r}: write {', '.join(_OVERLAP)}")
    return _OVERLAP[policy]


def _command(job: Table) -> tuple[CommandCall, list[str]]:
    """Return what a job's container runs, and what it will miss outside of it."""
    pod = job.table("template", "spec")
    containers = [each for each in pod.get("containers") or [] if isinstance(each, Table)]
    if not containers:
        raise UsageError("its pod has no container: there is nothing to run")
    first = containers[0]
    argv = [*_words(first, "command"), *_words(first, "args")]
    image = first.get("image") or "its image"
    if not first.get("command"):
        raise UsageError(
            f"its command is hidden in the image {image} (ENTRYPOINT): write it out as command"
        )
    around = (
        f"it ran in the image {image}: put what the command needs where the worker runs, or "
        f"begin it with docker run --rm {image}"
    )
    remarks = [around]
    if len(containers) > 1:
        rest = ", ".join(str(each.get("name")) for each in containers[1:])
        remarks.append(f"only its first container is taken; these are not: {rest}")
    env, hidden = _environment(first)
    missing = [*hidden, *(key for key in _SURROUNDINGS if first.get(key))]
    missing += [key for key in _POD_SURROUNDINGS if pod.get(key)]
    missing += [key for key in ("parallelism", "completions") if job.get(key, 1) != 1]
    missing += [key for key in ("podFailurePolicy",) if job.get(key)]
    if missing:
        remarks.append(f"it had {', '.join(missing)}: give the command what it needs of them")
    if any(_VARIABLE in word for word in argv):
        remarks.append("Kubernetes fills in $(NAME) in its command: write the values out")
    cwd = first.get("workingDir")
    call = CommandCall(argv=tuple(argv), cwd=None if cwd is None else str(cwd), env=env)
    return call, remarks


def _words(container: Table, key: str) -> list[str]:
    words = container.get(key) or []
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        raise UsageError(f"its {key} is no list of texts: put each word in quotes")
    return words


def _environment(container: Table) -> tuple[dict[str, str], list[str]]:
    env, hidden = {}, []
    for each in container.get("env") or []:
        if not isinstance(each, Table) or not isinstance(each.get("name"), str):
            raise UsageError("its env has an entry without a name: write name and value")
        if isinstance(each.get("value"), str):
            env[each["name"]] = each["value"]
        else:
            hidden.append(f"env {each['name']}")
    return env, hidden


def _notes(spec: Table, job: Table) -> Iterator[str]:
    if spec.get("suspend") is True:
        yield "it is suspended: it stays paused here"
    if "activeDeadlineSeconds" in job:
        yield "activeDeadlineSeconds bounds each attempt here, and all of them together there"
    if any(key in spec for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")):
        yield "history limits have no meaning here: jobs are rows, and none are deleted"


def _whole(table: Table, key: str, default: int) -> int:
    value = table.get(key, default)
    if type(value) is not int or value < 0:
        raise UsageError(f"{key} {value!r} is no whole number, 0 or more: write one")
    return value


def _seconds(table: Table, key: str) -> float | None:
    if table.get(key) is None:
        return None
    return float(_whole(table, key, 0))


def _comment(lines: list[str], line: int) -> str:
    """Return the comments on a line and directly above it."""
    said = [found[1]] if (found := _COMMENT.search(lines[line - 1])) else []
    for above in reversed(lines[: line - 1]):
        if not above.strip().startswith("#"):
            break
        said.insert(0, above.strip().lstrip("# "))
    return redacted("\n".join(said))
