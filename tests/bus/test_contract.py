"""Rule M8: what every bus must do. Written against the port, so that another bus can run it as it is."""

from datetime import timedelta

import pytest

from matoolkit.bus.topology import (
    DUPLICATE_WINDOW,
    EVENTS_OF_ORCHESTRATOR,
    LOCK_DURATION,
    TIME_TO_LIVE,
    jobs_of_worker,
)
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.domain.delivery import MAX_BODY_BYTES, MAX_DELIVERIES
from matoolkit.domain.messages import MemberAdded
from matoolkit.errors import MessageTooLarge
from matoolkit.ports import Bus, NoLongerOurs, Outgoing
from matoolkit.store import Store

from .messages import added, ids, job, put_aside, receive
from .state import change, changes

pytestmark = [pytest.mark.both_executions, pytest.mark.both_buses]

A_MOMENT = timedelta(seconds=1)


def test_m8_a_message_is_received_as_it_was_sent(bus: Bus) -> None:
    bus.send([added(7)])
    (message,) = receive(bus)
    assert (message.message_id, message.message_type, message.delivery_count) == ("member-added-7-0", "member-added", 1)
    assert decode("orchestrator-events", message.message_type, message.body) == MemberAdded(1, "user7", 7)


def test_m8_nothing_is_received_from_an_empty_subscription(bus: Bus) -> None:
    assert receive(bus) == []


def test_m8_messages_come_oldest_first_and_no_more_than_asked_for(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(3), added(1)])
    clock.advance(A_MOMENT)
    bus.send([added(2)])
    assert ids(receive(bus, 2)) == ["member-added-3-0", "member-added-1-0"]
    assert ids(receive(bus, 2)) == ["member-added-2-0"]


def test_m8_a_message_sent_twice_keeps_its_first_place(bus: Bus) -> None:
    bus.send([added(1), added(2), added(1)])
    assert ids(receive(bus)) == ["member-added-1-0", "member-added-2-0"]


def test_m8_a_job_reaches_its_worker_and_no_other(bus: Bus) -> None:
    bus.send([job("worker-01", 1), job("worker-02", 2)])
    assert ids(bus.receive(jobs_of_worker("worker-01"), 10)) == ["step-1-attempt-1"]
    assert ids(bus.receive(jobs_of_worker("worker-02"), 10)) == ["step-2-attempt-1"]
    assert bus.receive(jobs_of_worker("worker-03"), 10) == []


def test_m8_a_message_that_is_done_does_not_come_again(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1)])
    pile = receive(bus)
    assert bus.complete_now(pile) == len(pile)
    clock.advance(LOCK_DURATION * 2)
    assert receive(bus) == []


def test_m8_a_message_comes_again_when_its_lock_has_run_out_and_not_before(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1)])
    receive(bus)
    clock.advance(LOCK_DURATION - A_MOMENT)
    assert receive(bus) == []
    clock.advance(A_MOMENT)
    (again,) = receive(bus)
    assert again.delivery_count == 2


def test_m8_a_lock_can_be_renewed(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1)])
    pile = receive(bus)
    clock.advance(LOCK_DURATION - A_MOMENT)
    assert bus.renew(pile) == pile
    clock.advance(LOCK_DURATION - A_MOMENT)
    assert receive(bus) == []
    assert bus.complete_now(pile) == len(pile)


def test_m8_a_message_that_another_process_has_by_now_is_no_longer_ours(bus: Bus, clock: VirtualClock) -> None:
    """A consumer that hangs past its lock."""
    bus.send([added(1), added(2)])
    hung = receive(bus)
    assert bus.complete_now(hung[1:]) == len(hung[1:])
    clock.advance(LOCK_DURATION)
    theirs = receive(bus)
    assert bus.complete_now(hung) == 0
    assert bus.renew(hung) == []
    bus.abandon(hung)
    bus.dead_letter(hung[0], "Nope", "not ours")
    assert receive(bus) == []
    assert bus.complete_now(theirs) == len(theirs)


def test_m8_a_transaction_is_not_to_be_committed_if_another_process_has_a_message_by_now(
    bus: Bus, store: Store, clock: VirtualClock
) -> None:
    """Where the bus settles with the state. The next case says what the others do."""
    bus.send([added(1), added(2)])
    hung = receive(bus)
    clock.advance(LOCK_DURATION)
    theirs = receive(bus, 1)
    if not _settles_with_state(bus, store):
        return
    with pytest.raises(NoLongerOurs), store.transaction() as tx:
        change(tx, ["user1", "user2"], tx.time())
        bus.complete(tx, hung)
    assert changes(store) == []
    rest = bus.renew(hung)
    assert ids(rest) == ["member-added-2-0"]
    with store.transaction() as tx:
        bus.complete(tx, rest)
    assert bus.complete_now(theirs) == 1


def test_m8_a_bus_apart_cannot_know_whose_a_message_is_and_leaves_it_to_its_new_owner(
    bus: Bus, store: Store, clock: VirtualClock
) -> None:
    """The state changes anyway, which is why handlers have guards."""
    if _settles_with_state(bus, store):
        return
    bus.send([added(1), added(2)])
    hung = receive(bus)
    assert bus.complete_now(hung[1:]) == 1
    clock.advance(LOCK_DURATION)
    theirs = receive(bus)
    with store.transaction() as tx:
        change(tx, ["user1"], tx.time())
        bus.complete(tx, hung[:1])
    assert changes(store) == ["user1"]
    assert bus.complete_now(theirs) == 1


def test_m8_messages_are_settled_if_and_when_the_transaction_commits(
    bus: Bus, store: Store, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    pile = receive(bus)
    with pytest.raises(ZeroDivisionError), store.transaction() as tx:
        bus.complete(tx, pile)
        raise ZeroDivisionError
    assert bus.renew(pile) == pile
    with store.transaction() as tx:
        bus.complete(tx, pile)
    clock.advance(LOCK_DURATION)
    assert receive(bus) == []


def test_m8_what_comes_while_somebody_waits_is_received_next(bus: Bus) -> None:
    bus.send([added(1), added(2)])
    bus.wait(EVENTS_OF_ORCHESTRATOR, 5)
    assert ids(receive(bus)) == ["member-added-1-0", "member-added-2-0"]


def test_m8_an_abandoned_message_comes_again_at_once_and_the_delivery_counts(bus: Bus) -> None:
    bus.send([added(1)])
    bus.abandon(receive(bus))
    (again,) = receive(bus)
    assert again.delivery_count == 2


def test_m8_the_same_id_within_the_window_is_a_duplicate(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1), added(1)])
    bus.send([added(1)])
    bus.complete_now(receive(bus))
    clock.advance(DUPLICATE_WINDOW - A_MOMENT)
    bus.send([added(1)])
    assert receive(bus) == []


def test_m8_after_the_window_the_same_id_is_a_message_again(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1)])
    bus.complete_now(receive(bus))
    clock.advance(DUPLICATE_WINDOW + A_MOMENT)
    bus.send([added(1)])
    assert ids(receive(bus)) == ["member-added-1-0"]


def test_m8_of_a_pile_only_that_is_a_duplicate_which_came_within_the_window(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1)])
    bus.complete_now(receive(bus))
    clock.advance(DUPLICATE_WINDOW - A_MOMENT)
    bus.send([added(2)])
    bus.complete_now(receive(bus))
    clock.advance(A_MOMENT * 2)
    bus.send([added(3), added(2), added(1)])
    assert ids(receive(bus)) == ["member-added-3-0", "member-added-1-0"]


def test_m8_messages_of_one_pile_may_differ_in_everything(bus: Bus, clock: VirtualClock) -> None:
    later = clock.now() + LOCK_DURATION
    bus.send([job("worker-01", 1), job("worker-02", 2), added(3), added(4, not_before=later)])
    assert ids(bus.receive(jobs_of_worker("worker-01"), 10)) == ["step-1-attempt-1"]
    assert ids(bus.receive(jobs_of_worker("worker-02"), 10)) == ["step-2-attempt-1"]
    bus.complete_now(receive(bus))
    clock.advance(LOCK_DURATION)
    (last,) = receive(bus)
    assert (last.message_id, last.message_type, last.delivery_count) == ("member-added-4-0", "member-added", 1)


def test_m8_the_same_id_on_two_topics_is_two_messages(bus: Bus) -> None:
    bus.send([added(1), Outgoing("member-added-1-0", job("w").message)])
    assert len(receive(bus)) == len(bus.receive(jobs_of_worker("w"), 10)) == 1


def test_m8_a_scheduled_message_is_not_delivered_before_its_time(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1, not_before=clock.now() + timedelta(minutes=5)), added(2)])
    assert ids(receive(bus)) == ["member-added-2-0"]
    clock.advance(timedelta(minutes=5) - A_MOMENT)
    assert "member-added-1-0" not in ids(receive(bus))
    clock.advance(A_MOMENT)
    assert "member-added-1-0" in ids(receive(bus))


def test_m8_a_time_that_has_passed_is_now(bus: Bus, clock: VirtualClock) -> None:
    bus.send([added(1, not_before=clock.now() - timedelta(days=30))])
    assert ids(receive(bus)) == ["member-added-1-0"]


def test_m7_a_dead_letter_is_kept_with_its_reason_and_does_not_come_again(
    bus: Bus, store: Store, clock: VirtualClock
) -> None:
    bus.send([added(1)])
    (message,) = receive(bus)
    bus.dead_letter(message, "Poison", "it cannot be handled")
    clock.advance(LOCK_DURATION * 2)
    assert receive(bus) == []
    assert put_aside(bus, store) == [
        ("orchestrator-events", "orchestrator", "member-added-1-0", "Poison", "it cannot be handled", message.body)
    ]


def test_m6_after_ten_deliveries_a_message_is_put_aside(bus: Bus, store: Store) -> None:
    bus.send([added(1)])
    for delivery in range(1, MAX_DELIVERIES + 1):
        bus.sweep()
        (message,) = receive(bus)
        assert message.delivery_count == delivery
        bus.abandon([message])
    assert receive(bus) == []
    bus.sweep()
    ((_, _, name, reason, *_),) = put_aside(bus, store)
    assert (name, reason) == ("member-added-1-0", "MaxDeliveryCountExceeded")


def test_m8_what_nobody_takes_in_time_is_put_aside(bus: Bus, store: Store, clock: VirtualClock) -> None:
    # An open link of Service Bus may have asked for a message already.
    bus.stop()
    bus.send([added(1), added(2, not_before=clock.now() + timedelta(days=1))])
    clock.advance(TIME_TO_LIVE)
    assert ids(receive(bus)) == ["member-added-2-0"]
    bus.sweep()
    ((_, _, name, reason, *_),) = put_aside(bus, store)
    assert (name, reason) == ("member-added-1-0", "TTLExpiredException")


def test_m8_a_message_for_later_expires_so_much_later(bus: Bus, store: Store, clock: VirtualClock) -> None:
    bus.send([added(1, not_before=clock.now() + TIME_TO_LIVE)])
    clock.advance(TIME_TO_LIVE * 1.5)
    bus.sweep()
    assert ids(receive(bus)) == ["member-added-1-0"]
    assert put_aside(bus, store) == []


def test_m8_what_is_being_handled_does_not_expire(bus: Bus, store: Store, clock: VirtualClock) -> None:
    bus.stop()
    bus.send([added(1)])
    clock.advance(TIME_TO_LIVE - A_MOMENT)
    pile = receive(bus)
    clock.advance(A_MOMENT * 2)
    bus.sweep()
    assert put_aside(bus, store) == []
    assert bus.complete_now(pile) == len(pile)


def test_m9_a_message_that_no_bus_could_carry_is_refused(bus: Bus) -> None:
    def sized(characters: int) -> Outgoing:
        return Outgoing("member-added-1-0", MemberAdded(1, "é" * characters, 1))

    bus.send([sized(MAX_BODY_BYTES // 2 - 100)])
    with pytest.raises(MessageTooLarge, match="member-added-1-0"):
        bus.send([sized(MAX_BODY_BYTES // 2)])
    assert len(receive(bus)) == 1


def test_nothing_is_asked_of_the_database_for_nothing(bus: Bus) -> None:
    bus.send([])
    assert bus.complete_now([]) == 0
    assert bus.renew([]) == []
    bus.abandon([])


def _settles_with_state(bus: Bus, store: Store) -> bool:
    with store.transaction() as tx:
        return bus.settles_with(tx)
