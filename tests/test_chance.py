from timeball.chance import new_uuid


def test_a_new_uuid_is_one_of_version_seven() -> None:
    made = new_uuid()
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"


def test_later_uuids_sort_later() -> None:
    made = [new_uuid() for _ in range(2)]
    milliseconds = [uuid.int >> 80 for uuid in made]
    assert milliseconds == sorted(milliseconds)


def test_uuids_do_not_repeat() -> None:
    assert len({new_uuid() for _ in range(10_000)}) == 10_000
