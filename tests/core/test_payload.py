import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.payload import (
    ARGS_MAX,
    ERROR_MAX,
    RESULT_MAX,
    decode_args,
    decode_value,
    encode_args,
    encode_result,
    storable,
)
from timeball.errors import InvalidPayload

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**1024, 2**1024 - 1) | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def deep(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


@given(args=st.dictionaries(TEXT, JSON, max_size=4))
def test_what_is_accepted_comes_back_the_same(args) -> None:
    assert decode_args(encode_args(args)) == args


@given(value=st.dictionaries(st.text(), st.floats() | st.text() | st.binary() | st.integers()))
def test_whatever_is_accepted_is_json_that_postgresql_can_hold(value) -> None:
    try:
        text = encode_args(value)
    except InvalidPayload:
        return
    assert "\\u0000" not in text.replace("\\\\", "")
    text.encode()
    json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (math.nan, "args.x is nan"),
        (math.inf, "args.x is inf"),
        ("a\0b", "args.x contains U\\+0000"),
        ("\ud800", "args.x contains a lone surrogate"),
        ({"in": ["a\0"]}, r"args.x.in\[0\] contains U\+0000"),
        ({"k\0": 1}, r"args.x \(a key\) contains U\+0000"),
        (b"raw", "args.x is binary: pass base64"),
        (2**1024, "args.x has more than 1024 bits"),
        (-(2**1024), "args.x has more than 1024 bits"),
        (deep(70), "nested deeper than 64"),
        (deep(100_000), "nested deeper than 64|not storable"),
        (object(), "not storable as JSON"),
        ("x" * ARGS_MAX, "at most 262,144 fit"),
    ],
)
def test_arguments_that_cannot_be_stored_are_refused_with_their_path(value, advice: str) -> None:
    with pytest.raises(InvalidPayload, match=advice):
        encode_args({"x": value})


def test_keys_are_text() -> None:
    with pytest.raises(InvalidPayload, match="every key must be a str"):
        encode_args({1: 2})  # type: ignore[dict-item]


def test_a_null_and_an_escaped_backslash_are_no_faults() -> None:
    args = {"a": None, "b": "\\u0000", "c": [None]}
    assert decode_args(encode_args(args)) == args


def test_dates_become_texts() -> None:
    assert encode_args({"at": datetime(2026, 3, 1, tzinfo=UTC)}) == '{"at":"2026-03-01T00:00:00Z"}'


@pytest.mark.parametrize("text", ["[1]", '"x"', "3", "null"])
def test_stored_arguments_that_are_no_object_are_named(text: str) -> None:
    with pytest.raises(InvalidPayload, match="not an object"):
        decode_args(text)


@pytest.mark.parametrize("text", ["{", "", "\x00", '{"a":' * 5_000])
def test_stored_arguments_that_are_no_json_are_named(text: str) -> None:
    with pytest.raises(InvalidPayload, match="cannot be decoded"):
        decode_args(text)


@pytest.mark.parametrize(
    "value", [math.nan, "a\0b", "\ud800", b"raw", object(), 2**2000, deep(99), "x" * RESULT_MAX]
)
def test_a_result_that_cannot_be_stored_is_replaced_and_marked(value) -> None:
    kept = decode_value(encode_result(value))
    assert kept["unstorable"] == type(value).__name__
    assert kept["reason"]


def test_no_result_is_no_text() -> None:
    assert encode_result(None) is None
    assert decode_value(None) is None


@pytest.mark.parametrize("text", ["{", f'{{"n": 1{"0" * 5_000}}}', "[" * 100_000])
def test_what_cannot_be_decoded_is_shown_as_such(text: str) -> None:
    shown = decode_value(text)
    assert text.startswith(shown["undecodable"])
    assert shown["reason"]
    json.dumps(shown)


@given(text=st.text())
def test_any_text_can_be_made_storable(text: str) -> None:
    kept = storable(text)
    assert "\0" not in kept
    kept.encode()


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    kept = storable("a" * ERROR_MAX + "z" * ERROR_MAX)
    assert kept.startswith("aaa")
    assert kept.endswith("zzz")
    assert f"{ERROR_MAX:,} characters left out" in kept


def test_a_text_of_surrogates_alone_stays_bounded() -> None:
    assert len(storable("\ud800" * ERROR_MAX)) <= 6 * ERROR_MAX


@pytest.mark.parametrize("levels", [65, 500, 100_000])
def test_stored_arguments_that_are_too_deep_are_named_on_every_python(levels: int) -> None:
    text = '{"a":' + "[" * levels + "]" * levels + "}"
    with pytest.raises(InvalidPayload, match=r"nested deeper than 64|cannot be decoded"):
        decode_args(text)
    assert decode_args('{"a":' + "[" * 63 + "]" * 63 + ',"b":[{}]}')["b"] == [{}]
