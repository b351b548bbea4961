"""Secrets: stored by reference, looked up in the worker, and shown by nothing from then on."""

from __future__ import annotations

import base64
import io
import json
import logging
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.action.attempts import failure, outcome
from tests.store.world import memory_world

import timeball as tb
from timeball.action.notebook import Notebook
from timeball.action.secret import Secret, SecretUnavailable, revealed
from timeball.cli.job_text import job_lines, job_record
from timeball.client import Client
from timeball.core.notes import Note
from timeball.core.outcomes import Returned, Stopped
from timeball.core.payload import decode_value, encode_args
from timeball.core.redaction import redacted_value
from timeball.observe import concealment
from timeball.observe.concealment import (
    conceal,
    concealed,
    concealed_start,
    concealed_value,
    without_secrets,
)
from timeball.observe.transitions import ConcealingFormatter, JsonFormatter

CANARY = 'kana"rie/vögel+7'
ARGS = '{"token": {"$secret": "env:CANARY"}}'


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_CANARY", CANARY)
    # What is concealed here must not be missing from what other tests read.
    monkeypatch.setattr(concealment, "_spellings", {})
    monkeypatch.setattr(concealment, "_ordered", ())


def test_a_secret_is_stored_and_shown_as_its_reference() -> None:
    secret = Secret("env:CANARY")
    assert encode_args({"token": secret}) == '{"token":{"$secret":"env:CANARY"}}'
    secret.reveal()
    for shown in (repr(secret), str(secret), f"{secret}"):
        assert "env:CANARY" in shown
        assert CANARY not in shown


def test_a_job_receives_the_secret_and_only_its_worker_the_value() -> None:
    seen = []

    def call(token: Secret) -> None:
        seen.append(token.reveal())

    assert outcome(call, ARGS) == Returned()
    assert seen == [CANARY]


def test_secrets_lie_at_any_depth_of_the_arguments() -> None:
    def call(each: list[dict[str, Secret]]) -> str:
        return type(each[0]["inner"]).__name__

    assert outcome(call, '{"each": [{"inner": {"$secret": "env:CANARY"}}]}') == Returned('"Secret"')


def test_an_error_that_holds_the_value_is_stored_without_it() -> None:
    def call(token: Secret) -> None:
        raise ValueError(f"the service says: {token.reveal()} is not welcome")

    found = failure(call, ARGS)
    assert CANARY not in found.error
    assert "[secret env:CANARY] is not welcome" in found.error


def test_a_result_that_holds_the_value_is_stored_without_it() -> None:
    def call(token: Secret) -> dict[str, object]:
        value = token.reveal()
        return {"echo": f"Bearer {value}", "list": [value], value: 1, "number": 5}

    found = outcome(call, ARGS)
    assert isinstance(found, Returned)
    shown = "[secret env:CANARY]"
    assert decode_value(found.result) == {
        "echo": f"Bearer {shown}",
        "list": [shown],
        shown: 1,
        "number": 5,
    }


def test_a_result_keeps_its_numbers_where_a_secret_looks_like_one() -> None:
    conceal("9876", "env:PIN")
    found = outcome(lambda: {"count": 19_876, "pin": "9876"})
    assert isinstance(found, Returned)
    assert decode_value(found.result) == {"count": 19_876, "pin": "[secret env:PIN]"}


@pytest.mark.parametrize("formatter", [ConcealingFormatter("%(message)s"), JsonFormatter()])
def test_a_log_line_shows_no_value(formatter: logging.Formatter) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    log = logging.getLogger("canary")
    log.addHandler(handler)
    log.error("it was %s, or %r", Secret("env:CANARY").reveal(), [CANARY])
    assert "env:CANARY" in stream.getvalue()
    assert CANARY not in stream.getvalue()
    assert "vögel" not in stream.getvalue()


@given(st.text(min_size=4, max_size=40).filter(str.isprintable))
def test_no_spelling_of_a_value_is_shown(value: str) -> None:
    conceal(value, "env:X")
    spellings = (
        value,
        json.dumps(value)[1:-1],
        repr(value)[1:-1],
        quote(value, safe=""),
        base64.b64encode(value.encode()).decode().rstrip("="),
    )
    for spelling in spellings:
        assert concealed(f"<{spelling}>") != f"<{spelling}>"
    assert concealed_value({"a": [value]}) != {"a": [value]}


def test_the_command_line_shows_references_and_hides_values_with_telling_names() -> None:
    world = memory_world()
    client = Client(world.store)
    args = {"token": Secret("env:CANARY"), "password": "hunter22", "n": 1}
    job = client.submit("job", args=args).job()
    for shown in ("\n".join(job_lines(job, utc=True)), json.dumps(job_record(job), default=str)):
        assert "env:CANARY" in shown
        assert "hunter22" not in shown
    assert CANARY not in repr(job) + repr(asdict(job))
    assert redacted_value("", {"token": {"$secret": "env:X"}}) == {"token": {"$secret": "env:X"}}


def test_the_in_process_engine_hides_it_in_errors_too() -> None:
    def call(token: Secret) -> None:
        raise ValueError(token.reveal())

    with tb.Scheduler() as scheduler:
        handle = scheduler.submit(call, token=Secret("env:CANARY"))
        scheduler.wait()
    assert "[secret env:CANARY]" in str(handle.error)
    assert CANARY not in str(handle.error)


@pytest.mark.parametrize(
    "reference", ["", "hunter22", "env:", "ENV:X", "env:a b", 'env:a"b', 7, "https://u:hunter22@h"]
)
def test_a_reference_of_another_form_is_refused_and_not_repeated(reference: object) -> None:
    with pytest.raises(tb.UsageError, match="env:NAME") as caught:
        Secret(reference)  # type: ignore[arg-type]  # that is the point
    assert "hunter" not in str(caught.value)


def test_a_reference_reaches_only_what_was_put_there_for_jobs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIMEBALL_DSN", "postgresql://u:geheim@h/d")
    monkeypatch.setenv("TIMEBALL_SECRETS", str(tmp_path / "inner"))
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer").write_text("geheim")
    for reference in ("env:TIMEBALL_DSN", "env:HOME", "file:../outer", f"file:{tmp_path}/outer"):
        with pytest.raises(SecretUnavailable):
            Secret(reference).reveal()


def test_a_file_gives_its_text_without_the_last_line_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIMEBALL_SECRETS", str(tmp_path))
    (tmp_path / "token").write_bytes(b"abcd\nefgh\r\n")
    assert Secret("file:token").reveal() == "abcd\nefgh"
    with pytest.raises(SecretUnavailable, match="TIMEBALL_SECRETS"):
        Secret("file:other").reveal()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff\xfe")
    with pytest.raises(SecretUnavailable, match="UTF-8"):
        Secret("file:binary").reveal()


def test_a_program_may_bring_a_provider_of_its_own() -> None:
    @Secret.provider("vault")
    def from_vault(name: str) -> str:
        return f"value of {name}"

    assert revealed({"a": [Secret("vault:kv/x#y")]}) == {"a": ["value of kv/x#y"]}
    for name in ("env", "file", "Bad Name"):
        with pytest.raises(tb.UsageError):
            Secret.provider(name)
    with pytest.raises(SecretUnavailable, match="other"):
        Secret("other:x").reveal()


@pytest.mark.parametrize("value", ["", "abc", "x" * 70_000])
def test_a_value_that_cannot_be_concealed_is_not_used(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_CANARY", value)
    with pytest.raises(SecretUnavailable, match="4 to 65,536"):
        Secret("env:CANARY").reveal()


def test_a_missing_value_fails_the_attempt_and_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TIMEBALL_SECRET_CANARY")
    found = failure(lambda token: token.reveal(), ARGS)
    assert found.again
    assert "TIMEBALL_SECRET_CANARY" in found.error


def test_stored_arguments_that_refer_to_nothing_fail_for_good() -> None:
    found = failure(lambda token: token, '{"token": {"$secret": 7}}')
    assert (found.again, found.reason) == (False, "undecodable")


def test_what_a_job_says_of_itself_is_kept_without_it() -> None:
    notes: list[Note] = []
    notebook = Notebook(lambda new: notes.extend(new) or {note.job_id for note in new})
    value = Secret("env:CANARY").reveal()
    notebook.log((7, 1), f"it is {value}, and password=hunter22")
    notebook.progress((7, 1), 1, None, value)
    notebook.close()
    assert "it is [secret env:CANARY], and password=…" in str(notes)
    assert not {CANARY, "hunter22"} & set(str(notes).split())
    assert CANARY not in str(notes)


def test_a_job_that_cancels_itself_gives_no_reason_that_holds_it() -> None:
    def call(token: Secret) -> tb.Cancel:
        return tb.Cancel(f"not welcome: {token.reveal()}")

    assert outcome(call, ARGS) == Stopped("not welcome: [secret env:CANARY]")


@pytest.mark.parametrize("before", [0, 8_000, 30_000, 60_000, 600_000])
def test_no_part_of_a_value_is_left_where_a_text_is_cut(before: int) -> None:
    value = "canary-" * 9_000
    conceal(value, "env:LONG")
    text = without_secrets(f"{'x' * before}{value}{'y' * 40_000}", 16_000)
    assert "canary" not in text
    assert len(text) < 17_000


def test_of_a_beginning_no_part_of_a_value_is_left_at_its_end() -> None:
    conceal("canary-value", "env:X")
    assert concealed_start("it is canary-val") == "it is [secret env:X]"
    assert concealed_start("it is canary-value") == "it is [secret env:X]"
    assert concealed_start("it is can") == "it is can"
    assert concealed_start("it is not") == "it is not"
