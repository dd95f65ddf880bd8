"""The moves that the rules allow, written down by hand: the tables must say the same (rules M3, O4, O5, O14, O16, U2).

The tests of the guards, the diagrams and the coverage of the simulation are made from the tables, so none of them can
find a wrong row. This one can. A change of a table is made here too, with the rule that wants it.
"""

from typing import Any

from matoolkit.domain.moves import Move, batch, member, phase, step

# The machine, its move, the states it may start from, the state it leads to, and what else must hold.
ALLOWED = """
step | dispatch | pending polling | dispatched | next_attempt
step | succeed | pending dispatched | succeeded | same_job unanswered
step | poll later | pending dispatched | polling | same_job unanswered
step | time out | pending dispatched | poll_timeout | same_job unanswered
step | retry later | dispatched | pending | same_job unanswered
step | fail | dispatched | failed | same_job unanswered
step | retry a lost job | dispatched | pending | same_job overdue
step | fail a lost job | dispatched | failed | same_job overdue
step | fail unsent | pending polling | failed | -
step | cancel | pending dispatched polling | cancelled | -
step | note late | failed poll_timeout cancelled | stays | same_job unanswered
step | withdraw | failed poll_timeout cancelled | stays | same_job
step | take back | dispatched | pending | same_job unanswered
step | take back another try | dispatched | pending | same_job unanswered
step | take back a poll | dispatched | polling | same_job unanswered
step | give up | failed poll_timeout cancelled | stays | overdue
step | reopen | failed poll_timeout cancelled | pending | not_out
step | repeat | succeeded failed poll_timeout cancelled | pending | not_out
member | remove | active | removed | -
member | return | removed | active | not_undone
member | return undone | removed | active | undone
member | undo | active failed | removed | same_epoch
member | undo excluded | removed | stays | same_epoch excluded
member | fail | active | failed | same_epoch
member | reactivate | failed | active | -
member | restart | failed | active | -
member | restart undone | failed | active | -
member | refresh | active | stays | -
member | follow a new start | active | stays | -
member | leave the source | active | stays | in_source
member | reenter the source | any | stays | gone_from_source
member | announce | active | stays | -
member | announce its removal | removed | stays | -
member | catch up | active | stays | same_epoch not_caught_up
member | see off | removed | stays | same_epoch not_seen_off
member | keep outputs | any | stays | same_epoch
phase | dispatch | pending | dispatched | -
phase | skip | pending | skipped | -
phase | complete | dispatched | completed | -
phase | fail | dispatched | failed | -
phase | reopen | completed failed skipped | dispatched | -
phase | supersede | pending dispatched | superseded | -
phase | cancel | pending dispatched | cancelled | -
phase | expand | dispatched | stays | -
phase | reschedule | pending | stays | -
batch | request init | detected init_dispatched active | init_dispatched | -
batch | activate | detected init_dispatched | active | -
batch | complete | active | completed | -
batch | fail | init_dispatched active | failed | -
batch | cancel | detected init_dispatched active | cancelled | -
batch | lose its last | completed | failed | -
batch | be undone | completed failed | cancelled | -
batch | reopen | completed failed | active | -
batch | reopen init | failed | init_dispatched | -
batch | reschedule | detected init_dispatched active | stays | automated
batch | follow | detected init_dispatched active | stays | automated other_version not_reopened
batch | take a version | detected init_dispatched active | stays | other_version
batch | advance | active | stays | manual
batch | hold | detected init_dispatched active | stays | -
batch | note removals | detected init_dispatched active | stays | -
"""


def _line(machine: str, move: Move[Any]) -> str:
    (statuses,) = {type(status) for status in move.from_states}
    states = "any" if move.is_from_anywhere else " ".join(one for one in statuses if one in move.from_states)
    guards = " ".join(guard.name.lower() for guard in move.guards) or "-"
    return f"{machine} | {move.name} | {states} | {move.to_state or 'stays'} | {guards}"


def test_m3_the_tables_have_exactly_the_moves_that_the_rules_allow() -> None:
    tables: dict[str, tuple[Move[Any], ...]] = {
        "step": step.MOVES,
        "member": member.MOVES,
        "phase": phase.MOVES,
        "batch": batch.MOVES,
    }
    written = [_line(machine, move) for machine, moves in tables.items() for move in moves]
    assert written == ALLOWED.strip().splitlines()
