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


class Relay:
    """Publishes through the outbox of a store."""

    def __init__(self, store: Store, carrier: Carrier) -> None:
        self._store = store
        self._carrier = carrier
        # One batch for each open transaction. Weak keys: a transaction that is rolled back takes its batch with it.
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
        batch.rows += outbox.add_messages(own, [_new(envelope) for envelope in sealed(messages)], at, batch.claim)

    def withdraw(self, tx: ports.Transaction, job_ids: Collection[str]) -> list[str]:  # noqa: ARG002
        """Take back nothing: each message is claimed by the process that wrote it, which may have sent it."""
        return []

    def unreached(self, worker_ids: Collection[str]) -> Collection[str]:
        """Return the workers for which no job would wait."""
        return self._carrier.unreached(worker_ids)

    def sweep(self) -> int:
        """Send what other processes left behind, and say how many messages were claimed for it."""
        with self._store.transaction() as tx:
            claim = _new_claim(tx)
            batch = _Batch(claim, outbox.claim_messages(tx, claim, tx.time(), _SWEPT_AT_ONCE))
            tx.on_commit.append(lambda: self._send(batch))
        return len(batch.rows)

    def _own(self, tx: ports.Transaction) -> Transaction:
        own = self._store.own(tx)
        if own is None:
            raise ValueError("the outbox is in another database than the state")
        return own

    def _send(self, batch: _Batch) -> None:
        """Send messages. The state is committed already; if sending fails now, a sweep tries again."""
        if not batch.rows:
            return
        BEFORE_SEND.reached()
        sent, refused = self._deliver(batch.rows)
        AFTER_SEND.reached()
        with self._store.transaction() as tx:
            outbox.delete_sent(tx, batch.claim, [row.id for row in sent])
            _put_aside(tx, batch.claim, refused)

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
        """Send rows one by one, past the one that is refused."""
        sent: list[outbox.OutboxRow] = []
        refused: list[outbox.OutboxRow] = []
        for row in rows:
            out, never = self._deliver([row])
            sent += out
            refused += never
        return sent, refused


def _new_claim(tx: Transaction) -> outbox.Claim:
    return outbox.Claim(str(uuid.uuid4()), tx.time() + CLAIM_DURATION)


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
        envelope.all_properties_json,
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
    )
