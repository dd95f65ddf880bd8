"""The outbox on its way to a bus that is not in the state's database (rule M1, ADR 4).

A message is written in the transaction that causes it, with a claim of the process that writes it. That process sends
it right after the commit. If the process crashes, the claim runs out, and a sweep of any process sends the message
under the same id.
"""

import logging
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from weakref import WeakKeyDictionary

from matoolkit import ports
from matoolkit.bus.envelope import Carrier, Envelope, sealed
from matoolkit.bus.topology import WORKER_JOBS
from matoolkit.crashpoints import crash_point
from matoolkit.errors import MatoolkitError
from matoolkit.outages import Outage
from matoolkit.ports import Outgoing
from matoolkit.store import Store, outbox
from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from matoolkit.store.sql.transaction import Transaction

BEFORE_SEND = crash_point("relay.before_send")
AFTER_SEND = crash_point("relay.after_send")

# Longer than sending takes, so that no sweep sends the messages of a living process a second time.
CLAIM_DURATION = timedelta(minutes=1)
# A message that the bus refuses this often becomes a dead letter, so that messages behind it can leave.
MAX_TRIES = 10
_SWEPT_AT_ONCE = 500

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Batch:
    """What one transaction, or one sweep, has claimed to send."""

    claim: outbox.Claim
    rows: list[outbox.OutboxRow] = field(default_factory=list)
    has_let_go: bool = False


class Relay:
    """Publishes through the outbox of a store."""

    def __init__(self, store: Store, carrier: Carrier) -> None:
        self._store = store
        self._carrier = carrier
        self._open: WeakKeyDictionary[Transaction, _Batch] = WeakKeyDictionary()
        self._trouble = Outage("sending what waits in the outbox", log)

    def publish(self, tx: ports.Transaction, messages: Sequence[Outgoing]) -> None:
        """Publish messages if and when the transaction commits."""
        if not messages:
            return
        own = self._own(tx)
        at = own.time()
        batch = self._open.get(own)
        if batch is None:
            batch = self._open[own] = _Batch(_new_claim(own))
            own.on_commit.append(lambda: self._send(batch))
        rows = outbox.add_messages(own, [_new(envelope) for envelope in sealed(messages)], at, batch.claim)
        _take_in_turn(own, batch, rows)

    def withdraw(self, tx: ports.Transaction, job_ids: Collection[str]) -> list[str]:
        """Take back jobs that no process has tried to send yet, if and when the transaction commits; return which."""
        return outbox.remove_unsent(self._own(tx), WORKER_JOBS, job_ids)

    def sweep(self) -> int:
        """Send what other processes left behind, and say how many messages were claimed for it."""
        with self._store.transaction() as tx:
            batch = _Batch(_new_claim(tx))
            _take_in_turn(tx, batch, outbox.claim_messages(tx, batch.claim, tx.time(), _SWEPT_AT_ONCE))
            tx.on_commit.append(lambda: self._send(batch, is_sweep=True))
        return len(batch.rows)

    def _own(self, tx: ports.Transaction) -> Transaction:
        own = self._store.own(tx)
        if own is None:
            raise ValueError("the outbox is in another database than the state")
        return own

    def _send(self, batch: _Batch, *, is_sweep: bool = False) -> None:
        """Send messages. The state is committed already; if sending fails now, a sweep tries again."""
        if not batch.rows:
            return
        BEFORE_SEND.reached()
        sent, refused = self._deliver(batch.rows)
        AFTER_SEND.reached()
        with self._store.transaction() as tx:
            outbox.delete_sent(tx, batch.claim, [row.id for row in sent])
            _put_aside(tx, batch.claim, refused)
        # Some messages waited behind older ones, which may be sent now.
        if batch.has_let_go and sent and not is_sweep:
            self.sweep()

    def _deliver(self, rows: Sequence[outbox.OutboxRow]) -> tuple[list[outbox.OutboxRow], list[outbox.OutboxRow]]:
        """Send rows, and return those that are out and those that the bus will never take."""
        try:
            self._carrier.deliver([_envelope(row) for row in rows])
        except Exception as error:  # noqa: BLE001 - an adapter may raise anything, and the outbox keeps the messages
            if _is_refusal(error) and len(rows) > 1:
                return self._deliver_each(rows)
            self._trouble.failed(error)
            return [], [row for row in rows if _is_refusal(error) and row.tries >= MAX_TRIES]
        self._trouble.worked()
        return list(rows), []

    def _deliver_each(self, rows: Sequence[outbox.OutboxRow]) -> tuple[list[outbox.OutboxRow], list[outbox.OutboxRow]]:
        """Send rows one by one, so that a refused one blocks only messages with its order key."""
        sent: list[outbox.OutboxRow] = []
        refused: list[outbox.OutboxRow] = []
        blocked: set[str] = set()
        for row in rows:
            if row.order_key in blocked:
                continue
            out, never = self._deliver([row])
            sent += out
            refused += never
            if not out and not never and row.order_key is not None:
                blocked.add(row.order_key)
        return sent, refused


def _new_claim(tx: Transaction) -> outbox.Claim:
    return outbox.Claim(str(uuid.uuid4()), tx.time() + CLAIM_DURATION)


def _take_in_turn(tx: Transaction, batch: _Batch, rows: Sequence[outbox.OutboxRow]) -> None:
    """Keep rows that can be sent, and release those that would overtake an older one with the same order key."""
    waiting = set(outbox.out_of_turn(tx, batch.claim, [row.id for row in rows])) if rows else set()
    if waiting:
        outbox.unclaim(tx, batch.claim, tx.time(), waiting)
        batch.has_let_go = True
    batch.rows += [row for row in rows if row.id not in waiting]


def _put_aside(tx: Transaction, claim: outbox.Claim, refused: Sequence[outbox.OutboxRow]) -> None:
    """Make dead letters of messages that the bus will not take."""
    gone = set(outbox.delete_sent(tx, claim, [row.id for row in refused]))
    letters = [
        NewDeadLetter(
            row.topic, "outbox", row.message_id, row.message_type, row.body, row.properties_json,
            "Undeliverable", f"the bus refused it {row.tries} times", row.tries, row.created_at,
        )
        for row in refused
        if row.id in gone
    ]  # fmt: skip
    keep_dead_letters(tx, letters, tx.time())


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, MatoolkitError) and not error.transient


def _new(envelope: Envelope) -> outbox.NewMessage:
    return outbox.NewMessage(
        envelope.topic,
        envelope.message_id,
        envelope.message_type,
        envelope.body,
        envelope.properties_json,
        envelope.order_key,
        envelope.not_before,
    )


def _envelope(row: outbox.OutboxRow) -> Envelope:
    return Envelope(
        row.message_id,
        row.topic,
        row.message_type,
        row.body,
        row.properties_json,
        row.not_before if row.not_before > row.created_at else None,
        row.order_key,
    )
