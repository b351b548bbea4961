"""Whatever text stands in a field comes back as it was, and is read as nothing else."""

from __future__ import annotations

from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.world import World, end

from timeball.core.payload import decode_value, encode_args
from timeball.core.records import JobSpec
from timeball.core.states import Ending
from timeball.core.uniqueness import Unique
from timeball.store.base import JobFilter

HOSTILE = (
    *("'; DROP TABLE timeball.job; --", "%s", "%(kind)s", "$1", "$$", '{a,"b",NULL}', "\\", "\\'"),
    *('" OR 1=1', "null", "NULL", "*", "a*", "-1", "<b>&amp;", "a:b/c?d#e", "\u202e", "\U0001f600"),
    *("pg_sleep(9)", "/* */", "\r\n", " ", "timeball.job", "{0.__class__}", "{{7*7}}", "\x1b[2J"),
)
text = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(text, min_size=9, max_size=9))
def test_every_field_of_text_is_kept_as_it_was(world: World, words: list[str]) -> None:
    kind, queue, key, unique, argument, name, error, error_type, result = words
    spec = JobSpec(
        uuid=uuid4(),
        kind=kind,
        queue=queue,
        key=f"{uuid4()} {key}",
        unique=Unique(key=f"{uuid4()} {unique}"),
        args=encode_args({argument: [argument]}),
    )
    world.store.submit([spec])
    worker = world.store.register(name, kinds=[kind], queues=[queue], lease_s=30.0)
    world.store.promote(10)
    (turn,) = world.claim(worker)
    given_args = decode_value(turn.args)
    assert (turn.uuid, turn.kind, given_args) == (spec.uuid, kind, {argument: [argument]})
    how = {"error_type": error_type, "error": error, "result": encode_args({"said": result})}
    world.settle(worker, end(turn, Ending.FAILED, **how))
    found = world.job(turn)
    assert (found.kind, found.queue, found.key) == (kind, queue, spec.key)
    assert (found.args, found.result) == ({argument: [argument]}, {"said": result})
    assert (found.error_type, found.error) == (error_type, error)
    shown = world.store.jobs(JobFilter(queue=queue, kind=kind))
    assert spec.uuid in {job.uuid for job in shown}
    assert {(job.queue, job.kind) for job in shown} == {(queue, kind)}
    world.store.retire(worker)
