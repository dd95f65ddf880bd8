"""The outbox on its way to a bus that is not in the state's database (rules M1, ADR 4).

A message is written with the state that causes it, and claimed for the process that writes it. That process sends it
right after the commit. What a crash leaves behind is claimed by a sweep, here or elsewhere, once the claim has run out,
and sent under the same id.
"""

import logging
import uuid
from collections.abc import Sequence
from datetime import timedelta

import orjson

from matoolkit.bus.envelope import Carrier, Envelope, sealed
from matoolkit.crashpoints import crash_point
from matoolkit.errors import MatoolkitError
from matoolkit.ports import Outgoing
from matoolkit.store import Store, outbox
from matoolkit.store.transaction import Transaction

BEFORE_SEND = crash_point("relay.before_send")
AFTER_SEND = crash_point("relay.after_send")

# Longer than sending takes, so that a process that lives is not overtaken by a sweep.
CLAIM_DURATION = timedelta(minutes=1)
_SWEPT_AT_ONCE = 500

log = logging.getLogger(__name__)


class Relay:
    """Publishes through the outbox of a store."""

    def __init__(self, store: Store, carrier: Carrier) -> None:
        self._store = store
        self._carrier = carrier

    def publish(self, tx: Transaction, messages: Sequence[Outgoing]) -> None:
        """Publish messages if and when the transaction commits."""
        if not messages:
            return
        at = tx.time()
        claim = outbox.Claim(str(uuid.uuid4()), at + CLAIM_DURATION)
        rows = outbox.add_messages(tx, [_new(envelope) for envelope in sealed(messages)], at, claim)
        mine = self._in_turn(tx, claim, rows)
        tx.on_commit.append(lambda: self._try_to_send(claim, mine))

    def sweep(self) -> int:
        """Send what other processes left behind, and say how many messages that were."""
        with self._store.transaction() as tx:
            at = tx.time()
            claim = outbox.Claim(str(uuid.uuid4()), at + CLAIM_DURATION)
            rows = self._in_turn(tx, claim, outbox.claim_messages(tx, claim, at, _SWEPT_AT_ONCE))
        self._try_to_send(claim, rows)
        return len(rows)

    def _in_turn(
        self, tx: Transaction, claim: outbox.Claim, rows: Sequence[outbox.OutboxRow]
    ) -> list[outbox.OutboxRow]:
        """Let go of messages that would overtake an older one of the same member."""
        waiting = set(outbox.out_of_turn(tx, claim)) if rows else set()
        if waiting:
            outbox.unclaim(tx, claim, tx.time(), waiting)
        return [row for row in rows if row.id not in waiting]

    def _try_to_send(self, claim: outbox.Claim, rows: Sequence[outbox.OutboxRow]) -> None:
        """Send messages; if that fails now, a sweep tries again, and the state that caused them stands."""
        if not rows:
            return
        BEFORE_SEND.reached()
        try:
            self._carrier.deliver([_envelope(row) for row in rows])
            AFTER_SEND.reached()
            with self._store.transaction() as tx:
                outbox.delete_sent(tx, claim, [row.id for row in rows])
        except MatoolkitError as error:
            log.warning("%d messages wait in the outbox: %s", len(rows), error.message)


def _new(envelope: Envelope) -> outbox.NewMessage:
    return outbox.NewMessage(
        envelope.topic,
        envelope.message_id,
        envelope.message_type,
        envelope.body,
        orjson.dumps(envelope.properties).decode(),
        envelope.order_key,
        envelope.not_before,
    )


def _envelope(row: outbox.OutboxRow) -> Envelope:
    return Envelope(
        row.message_id,
        row.topic,
        row.message_type,
        row.body,
        orjson.loads(row.properties_json),
        row.not_before if row.not_before > row.created_at else None,
        row.order_key,
    )
