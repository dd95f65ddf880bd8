"""People are found by what others know of them, on every database."""

from sqlalchemy import update

from matoolkit.store import Store
from matoolkit.store.people import (
    enrolments_containing,
    enrolments_numbered,
    enrolments_of_key,
    enrolments_with_value,
)
from matoolkit.store.schema import batch_members
from tests.store.world import World


def test_a3_people_are_found_by_key_number_part_and_address(store: Store, world: World) -> None:
    batch, other = world.batch(), world.batch(world.runbook("other"))
    first, second = world.members(batch, 2)
    third = world.members(other, 1)[0]
    with store.transaction() as tx:
        row = '{"Mail": "Ann_1@Contoso.com", "Aliases": ["x@y"]}'
        tx.execute(update(batch_members).where(batch_members.c.id == second).values(data_json=row))
    with store.reading() as tx:
        assert [one.id for one in enrolments_of_key(tx, "USER0")] == [third, first]
        assert [one.id for one in enrolments_of_key(tx, "user0", batch_id=batch.id)] == [first]
        assert [one.id for one in enrolments_numbered(tx, second)] == [second]
        assert enrolments_numbered(tx, second, batch_id=other.id) == []
        assert [one.id for one in enrolments_containing(tx, "SER", before=None, limit=9)] == [third, second, first]
        assert [one.id for one in enrolments_containing(tx, "ser", before=third, limit=1)] == [second]
        assert enrolments_containing(tx, "u%r", before=None, limit=9) == []
        assert [(one.id, found) for one, found in enrolments_with_value(tx, "ann_1@contoso.COM", 9)] == [(second, row)]
        assert [one.id for one, _ in enrolments_with_value(tx, "X@Y", 9, batch_id=batch.id)] == [second]
        assert enrolments_with_value(tx, "annX1@contoso.com", 9) == []
        assert enrolments_with_value(tx, "x@y", 9, batch_id=other.id) == []
