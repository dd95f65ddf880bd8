from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.gates import HOLDS, Gate, GateKind, Gates, kept_phases, time_kept, why_of
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.why import WhyKind
from matoolkit.runbook.model import Phase

SHUT = Gate(
    id=1,
    kind=GateKind.PAUSE,
    reach=Door.SEND,
    worker_id=None,
    runbook_name=None,
    member_key_fold=None,
    batch_id=None,
    shut_from=datetime(2026, 3, 3, tzinfo=UTC),
    shut_until=None,
    shut_by="anna",
    reason="legal hold",
)
JOB = Work("wave", 7, "worker-01", "Ada")
SCOPES = [
    {},
    {"batch_id": 7},
    {"runbook_name": "wave"},
    {"worker_id": "worker-01"},
    {"runbook_name": "wave", "member_key_fold": "ada"},
]
OTHERS = {"batch_id": 8, "runbook_name": "other", "worker_id": "worker-02", "member_key_fold": "bob"}


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_g2_a_gate_covers_what_agrees_with_all_that_its_scope_names(scope: dict[str, object]) -> None:
    assert Gates([replace(SHUT, **scope)]).at(Door.SEND, JOB) == [why_of(replace(SHUT, **scope))]  # type: ignore[arg-type]
    for name in scope:
        another = replace(SHUT, **{**scope, name: OTHERS[name]})  # type: ignore[arg-type]
        assert Gates([another]).at(Door.SEND, JOB) == []
        assert not another.covers(JOB), "asked one by one too, when jobs are taken back and time stands still"


def test_g2_a_gate_of_a_person_holds_whatever_the_case_of_its_key_and_in_every_batch() -> None:
    gates = Gates([replace(SHUT, runbook_name="wave", member_key_fold="ada")])
    for key, batch in product(("ada", "ADA"), (7, 8)):
        assert gates.at(Door.SEND, Work("wave", batch, "worker-01", key))
    assert not gates.at(Door.SEND, Work("other", 7, "worker-01", "ada"))
    assert not gates.at(Door.SEND, Work("wave", 7, "worker-01"))


def test_g2_a_gate_of_a_worker_lets_its_work_begin_and_no_job_of_it_leave() -> None:
    gates = Gates([replace(SHUT, worker_id="worker-01")])
    assert gates.at(Door.SEND, JOB)
    assert not gates.at(Door.START, Work("wave", 7, member_key="Ada"))


def test_g1_a_gate_that_shuts_the_send_door_shuts_the_start_door_too_and_not_the_reverse() -> None:
    said = {(reach, door): bool(Gates([replace(SHUT, reach=reach)]).at(door, JOB)) for reach, door in _doors()}
    assert [pair for pair, is_shut in said.items() if not is_shut] == [(Door.START, Door.SEND)]


def _doors() -> Iterator[tuple[Door, Door]]:
    return product(Door, Door)


def test_g1_all_gates_are_named_holds_first_and_always_in_the_same_order() -> None:
    kinds = [GateKind.PAUSE, GateKind.LATE, GateKind.REMOVALS, GateKind.PAUSE]
    shut = [replace(SHUT, id=number, kind=kind) for number, kind in enumerate(kinds)]
    for order in (shut, shut[::-1]):
        assert [why.gate_id for why in Gates(order).at(Door.START, JOB)] == [2, 1, 0, 3]


def test_g10_what_t6_holds_a_batch_for_is_a_kind_of_gate() -> None:
    assert {str(kind) for kind in HoldKind} == set(map(str, HOLDS))
    hold = replace(SHUT, kind=GateKind.REMOVALS, reach=Door.START, batch_id=7, hold_key="key")
    gates = Gates([replace(SHUT, batch_id=7), hold])
    assert gates.hold_of(7) == hold
    assert gates.hold_of(8) is None
    assert Gates([replace(SHUT, batch_id=7)]).hold_of(7) is None, "a pause changes no membership"
    assert Gates([hold]).at(Door.START, Work("wave", 7)) == [why_of(hold)]
    assert Gates([hold]).at(Door.START, Work("wave", 7, is_init=True)) == [], "an init that was asked for runs"


def test_g7_time_that_two_gates_kept_counts_once() -> None:
    minute, begins = timedelta(minutes=1), SHUT.shut_from
    early = replace(SHUT, opened_at=begins + 20 * minute)
    later = replace(SHUT, id=2, shut_from=begins + 10 * minute, shut_until=begins + 30 * minute)
    elsewhere = replace(SHUT, id=3, batch_id=8)
    begun_only = replace(SHUT, id=4, reach=Door.START)
    gates, until = [later, early, elsewhere, begun_only], begins + 60 * minute
    assert time_kept(gates, JOB, begins, until) == 30 * minute
    assert time_kept(gates, JOB, begins + 15 * minute, until) == 15 * minute


def phase(number: int, *earlier: int, batch: int = 7) -> PhaseDoor:
    step = {"name": "one", "worker_id": "worker-01", "function": "Move"}
    rules = Phase.model_validate({"name": f"phase-{number}", "offset": "T-0", "steps": [step]})
    return PhaseDoor(number, batch, "wave", (1, 0, number), SHUT.shut_from, frozenset({number, *earlier}), rules)


def test_g2_a_gate_of_a_phase_covers_that_phase_and_the_later_ones_and_nothing_else() -> None:
    gates = Gates([replace(SHUT, batch_id=7, phase_execution_id=2)])
    for one, is_kept in ((phase(1), False), (phase(2, 1), True), (phase(3, 1, 2), True)):
        assert bool(gates.at(Door.START, Work("wave", 7, phase=one))) is is_kept
    assert not gates.at(Door.START, Work("wave", 7, is_init=True))


def test_g9_no_phase_begins_while_an_earlier_one_of_its_batch_is_kept() -> None:
    due = [phase(3, 1, 2), phase(2, 1), phase(1), phase(4, batch=8)]
    kept = kept_phases(Gates([replace(SHUT, batch_id=7, phase_execution_id=2)]), due)
    assert {number: [why.kind for why in whys] for number, whys in kept.items()} == {
        2: [WhyKind.PAUSE],
        3: [WhyKind.EARLIER_PHASE],
    }
    assert kept[3][0].sentence == "phase-2 comes first, and it waits"


def test_x2_a_freeze_and_a_late_phase_say_what_ends_them_and_how() -> None:
    until = datetime(2026, 3, 9, 6, tzinfo=UTC)
    freeze = why_of(replace(SHUT, kind=GateKind.FREEZE, shut_until=until, reason="year end"))
    assert freeze.sentence == "frozen by anna until 2026-03-09 06:00 UTC: year end"
    assert (freeze.until, freeze.ended_by) == (until, "time")
    endless = why_of(replace(SHUT, kind=GateKind.FREEZE, reason="year end"))
    assert (endless.ended_by, endless.command) == ("person", "matoolkit freeze remove 1 --reason TEXT")
    late = why_of(replace(SHUT, kind=GateKind.LATE, phase_execution_id=3, reason="phase 'p' was due yesterday"))
    assert (late.sentence, late.ended_by) == ("late: phase 'p' was due yesterday", "person")
    assert late.command == "matoolkit gate open 1 --reason TEXT"
