"""The kinds that this program knows, and the decorators that put functions there.

A name that comes out of a store is looked up here and never imported: what a worker
can be made to run is what its own program has registered.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final, ParamSpec, TypedDict, TypeVar, Unpack, get_type_hints, overload

from timeball.action.kind import CronSpec, Kind, RunsIn
from timeball.action.parameters import Parameters
from timeball.core.cron import load_zone, parse, resolve
from timeball.core.misfire import OCCURRENCE_ARG, Catchup
from timeball.core.records import Delivery
from timeball.core.retry import Retry
from timeball.errors import UnknownKind, UsageError

__all__ = ["DEFAULT", "OCCURRENCE_KEY", "CronSpec", "Kind", "Registry", "cron", "job", "kind_of"]

P = ParamSpec("P")
R = TypeVar("R")

OCCURRENCE_KEY: Final = OCCURRENCE_ARG


class KindOptions(TypedDict, total=False):
    """The options of a kind; see `Kind` for what each means."""

    queue: str
    retry: Retry
    timeout_s: float | None
    priority: int
    max_crashes: int
    delivery: Delivery | str
    runner: RunsIn | None
    key: str | None
    transactional: bool
    exclusive: bool


class JobOptions(KindOptions, total=False):
    """What `@job(...)` takes."""

    name: str
    """Else ``module.function``."""


class CronOptions(TypedDict, total=False):
    """What `@cron(...)` takes besides the expression and the zone."""

    name: str
    """Unique name of the schedule; else the kind's, with a number from the second one on."""

    dst: str
    """"auto" or "cron": how `gap` and `overlap` are chosen where they are not given."""

    gap: str | None
    overlap: str | None
    catchup: str
    """Of several that were missed run the "last", "none", or "all"."""

    args: Mapping[str, Any]


class Registry(Mapping[str, Kind]):
    """Kinds by name."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._names: dict[Callable[..., Any], str] = {}
        self._provisional: set[Callable[..., Any]] = set()
        """Those that only `cron` has made a kind so far: `job` may still give name and options."""

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, kind: Kind) -> Kind:
        """Register a kind, or change the one that the same place has registered before.

        Raises:
            UsageError: Another place has that name.
        """
        known = self._kinds.get(kind.name)
        if known is not None and known.place != kind.place:
            raise UsageError(
                f"two kinds are named {kind.name!r}: {known.place} and {kind.place}: "
                'give one of them another, @job(name="…")'
            )
        self._kinds[kind.name] = kind
        self._names[kind.call] = kind.name
        return kind

    def kind_of(self, call: Callable[..., Any] | str) -> Kind:
        """Return the kind of a registered function, or of that name.

        Raises:
            UnknownKind: It is not registered here.
        """
        name = call if isinstance(call, str) else self._names.get(call)
        if name in self._kinds:
            return self._kinds[name]
        if not isinstance(call, str):
            raise UnknownKind(f"{_default_name(call)} is no job: decorate it with @job")
        close = difflib.get_close_matches(call, self._kinds, 1)
        hint = f"did you mean {close[0]!r}?" if close else "import the module that defines it"
        raise UnknownKind(f"no kind {call!r} is registered here: {hint}")

    @overload
    def job(self, call: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def job(
        self, /, **options: Unpack[JobOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def job(self, call: Callable[..., Any] | None = None, /, **options: Unpack[JobOptions]) -> Any:
        """Make a function a kind of job; the function itself stays as it is.

        Use it as ``@job`` or as ``@job(queue="mail", retry=Retry(5))``; see `JobOptions`.

        Raises:
            UsageError: An option is unknown or wrong, or the name is taken.
        """
        _check_options("job", options, JobOptions)

        def decorate(call: Callable[P, R]) -> Callable[P, R]:
            self._define(call, options)
            return call

        return decorate if call is None else decorate(call)

    def cron(
        self, expression: str, tz: str = "UTC", **options: Unpack[CronOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Make a job of a function whenever a cron expression comes due.

        May be given several times, above or below `job`, or alone; see `CronOptions`.

        Raises:
            InvalidSchedule: The expression or the zone is wrong, or it never comes due.
            UsageError: An option is unknown or wrong, or the function does not take `args`.
        """
        _check_options("cron", options, CronOptions)
        spec = _schedule(expression, tz, options)

        def decorate(call: Callable[P, R]) -> Callable[P, R]:
            known = self._names.get(call)
            kind = self._kinds[known] if known else self._define(call, {})
            if known is None:
                self._provisional.add(call)
            count = len(kind.schedules) + 1
            named = replace(
                spec,
                name=spec.name or (kind.name if count == 1 else f"{kind.name}-{count}"),
                args=kind.encode(options.get("args", {})),
            )
            self.add(replace(kind, schedules=(*kind.schedules, named)))
            return call

        return decorate

    def load(self, target: str) -> list[Kind]:
        """Import a module, or a file such as ``jobs/app.py``, and return the kinds it defines.

        With those of the modules that it is the first to import. The folder of the file, or the
        current one, is put on the module search path.

        Raises:
            UsageError: It cannot be imported; the cause is told and chained.
        """
        before = set(self._kinds)
        if target.endswith(".py") or "/" in target:
            module = _import_file(Path(target).resolve())
        else:
            _put_on_path(Path.cwd())
            module = _import(target, target)
        return [
            kind
            for name, kind in self._kinds.items()
            if name not in before or kind.call.__module__ == module.__name__
        ]

    def _define(self, call: Callable[..., Any], options: JobOptions) -> Kind:
        target = inspect.unwrap(call)
        if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
            raise UsageError(f"{_default_name(call)} yields: a job returns its result")
        own: dict[str, Any] = dict(options)
        name = own.pop("name", None) or _default_name(call)
        parameters, place = Parameters.of(call), _place(target)
        kind = kind_with(name, call, options=own, parameters=parameters, place=place)
        if call in self._provisional:
            self._provisional.remove(call)
            known = self._kinds.pop(self._names[call])
            kind = replace(kind, schedules=_renamed(known, name))
        return self.add(kind)


def kind_with(
    name: str,
    call: Callable[..., Any],
    *,
    options: Mapping[str, Any],
    parameters: Parameters,
    place: str,
) -> Kind:
    """Return the kind of something to call, with options as `KindOptions` has them.

    Raises:
        UsageError: An option is wrong.
    """
    given = dict(options)
    try:
        given["delivery"] = Delivery(given.get("delivery", Delivery.AT_LEAST_ONCE))
    except ValueError:
        raise UsageError(
            f"delivery is {given['delivery']!r}: write 'at_least_once' or 'at_most_once'"
        ) from None
    if given["delivery"] is Delivery.AT_MOST_ONCE:
        given.setdefault("retry", Retry(0))
    is_async = inspect.iscoroutinefunction(call)
    return Kind(
        name=name, call=call, parameters=parameters, is_async=is_async, place=place, **given
    )


def _renamed(known: Kind, name: str) -> tuple[CronSpec, ...]:
    """Return the schedules of a kind that gets a name after them."""
    return tuple(
        replace(spec, name=name + spec.name.removeprefix(known.name))
        if spec.name.startswith(known.name)
        else spec
        for spec in known.schedules
    )


def _schedule(expression: str, tz: str, options: CronOptions) -> CronSpec:
    cron = parse(expression)
    zone = load_zone(tz)
    dst = options.get("dst", "auto")
    policy = resolve(cron, dst, gap=options.get("gap"), overlap=options.get("overlap"))
    catchup = options.get("catchup", Catchup.LAST)
    if catchup not in list(Catchup):
        raise UsageError(f"catchup is {catchup!r}: write {', '.join(map(repr, map(str, Catchup)))}")
    return CronSpec(
        expression=expression,
        tz=zone.name,
        name=options.get("name", ""),
        gap=str(policy.gap),
        overlap=str(policy.overlap),
        dst=str(dst),
        catchup=str(catchup),
    )


def _check_options(what: str, given: Mapping[str, object], known: type) -> None:
    names = get_type_hints(known)
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise UsageError(f"@{what} has no option {', '.join(unknown)}: it has {', '.join(names)}")


def _default_name(call: Callable[..., Any]) -> str:
    module, name = getattr(call, "__module__", None), getattr(call, "__qualname__", None)
    if module is None or name is None or "<lambda>" in name:
        raise UsageError(f'{call!r} has no name of its own: write @job(name="…")')
    if module == "__main__":
        # The same function has the same name whether its file is run or imported.
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "main").stem
    return f"{module}.{name.replace('<locals>.', '')}"


def _place(call: Callable[..., Any]) -> str:
    code = getattr(call, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(call)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path} is not a file: write the path of a Python file, or a module name")
    name = path.stem
    if not name.isidentifier():
        raise UsageError(f"{path.name} cannot be imported: rename it to letters, digits and _")
    _put_on_path(path.parent)
    module = _import(name, str(path))
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != path:
        raise UsageError(
            f"{path} cannot be imported as {name}, because {found or 'a built-in module'} has that "
            "name: rename the file"
        )
    return module


def _put_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _import(name: str, shown: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # whatever foreign code does while it is imported
        cause = f"{type(error).__name__}: {error}"
        raise UsageError(f"{shown} cannot be imported: {cause}") from error


DEFAULT: Final = Registry()
"""Where the decorators of the package put things."""

job = DEFAULT.job
cron = DEFAULT.cron
kind_of = DEFAULT.kind_of
