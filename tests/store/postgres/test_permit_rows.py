"""The rows of permits: those of keys that are used no longer go, and nobody is misled by that."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from tests.store.postgres.plans import Explained
from tests.store.postgres.sessions import Session, submit
from tests.store.postgres_world import postgres_world
from tests.store.world import World

from timeball.core.limits import Scope
from timeball.core.rate import Rate
from timeball.core.upkeep import Keep
from timeball.store.limiting import Ask
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.encoding import encode

DAY_S = 86_400.0
FRESH = {"asks": encode([Ask(["key:k"], 9)._asdict()]), "spent": "[]"}


def trim(world: World, limit: int = 500) -> int:
    """Trim everything, and return in how many looks."""
    after: tuple[int, ...] | None = ()
    looks = 0
    while after is not None:
        after, looks = world.store.trim(Keep(), after=after, limit=limit).after, looks + 1
    return looks


def test_rows_of_keys_that_are_used_no_longer_go_a_few_at_a_time(dsn: str) -> None:
    world = postgres_world(dsn)
    world.store.limit_starts(Scope.KEY, "t-*", Rate(1))
    world.store.limit_starts(Scope.KEY, "month-*", Rate(3, per_s=30 * DAY_S))
    world.store.limit_starts(Scope.KEY, "lifted", Rate(3, per_s=30 * DAY_S))
    for name in ("month-1", "lifted", *(f"t-{n}" for n in range(10))):
        world.store.permits([Ask([f"key:{name}"], 2)], [])
        world.travel(0.001)
    world.store.limit_starts(Scope.KEY, "lifted", None)

    def names() -> set[str]:
        with psycopg.connect(dsn) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM timeball.permit")}

    world.travel(DAY_S - 1)
    trim(world)
    assert len(names()) == 12
    world.travel(9)
    world.store.permits([Ask(["key:t-9"], 1)], [])
    assert trim(world, limit=4) == 1 + 1 + 3  # jobs, leases, 11 rows
    assert names() == {"key:month-1", "key:t-9"}
    assert world.store.permits([Ask(["key:month-1"], 9)], []).granted[0].permits == 1
    world.travel(40 * DAY_S)
    trim(world)
    assert names() == set()
    world.close()


def test_a_row_that_goes_while_somebody_waits_for_it_is_made_anew(
    ledger: PostgresStore, session: Callable[[], Session]
) -> None:
    ledger.limit_starts(Scope.KEY, "k", Rate(1))
    ledger.permits([Ask(["key:k"], 1)], [])
    one, two = session(), session()
    one.run("UPDATE timeball.permit SET newest_us = 1, opens_us = 1, untils = '{1}'")
    one.begin().verb("trim_permits", after=-1, limit=9)
    two.verb_blocks("permits", **FRESH)
    one.commit()
    ((answer,),) = two.answer()
    assert [part["permits"] for part in answer["granted"][0]] == [1]
    assert session().verb("permits", **FRESH)[0][0]["granted"] == [[]]


def test_rows_that_somebody_is_at_are_left_to_him(
    ledger: PostgresStore, session: Callable[[], Session]
) -> None:
    ledger.limit_starts(Scope.KEY, "k", Rate(1))
    ledger.permits([Ask(["key:k"], 1)], [])
    one, two = session(), session()
    one.run("UPDATE timeball.permit SET newest_us = 1, opens_us = 1, untils = '{1}'")
    one.begin().verb("permits", **FRESH)
    two.verb("trim_permits", after=-1, limit=9)
    one.commit()
    assert two.verb("permits", **FRESH)[0][0]["granted"] == [[]]


NEXT_OPENING = "SELECT timeball.next_opening()"


@pytest.mark.slow
def test_of_ten_thousand_keys_with_permits_a_hundred_are_looked_at(
    ledger: PostgresStore, dsn: str
) -> None:
    """However many have had permits of late: who waits for the last of them is found in steps."""
    ledger.limit_starts(Scope.KEY, "t-*", Rate(1))
    explained = Explained(dsn)
    explained.connection.execute(
        "INSERT INTO timeball.permit (name, opens_us) SELECT 'key:t-' || n,"
        " extract(epoch FROM clock_timestamp() + n * interval '1 second') * 1000000 + 60000000"
        " FROM generate_series(1, 10000) AS n"
    )
    rows, plans = explained.ask(NEXT_OPENING)
    assert 155 < rows[0][0] <= 160
    assert max(plan.most_rows() for plan in plans) <= 101
    assert not any(plan.scanned() & {"permit", "held"} for plan in plans)
    submit(ledger, key="t-30")
    submit(ledger, key="t-7000")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE timeball.permit SET opens_us = opens_us - 1 WHERE name ~ '50$'")
    rows, _ = explained.ask(NEXT_OPENING)
    assert 85 < rows[0][0] <= 90
    explained.connection.execute("DELETE FROM timeball.permit WHERE opens_us < (SELECT opens_us"
                                 " FROM timeball.permit WHERE name = 'key:t-6950')")  # fmt: skip
    rows, _ = explained.ask(NEXT_OPENING)
    assert 7_055 < rows[0][0] <= 7_060
    explained.close()
