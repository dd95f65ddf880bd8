"""People who sign off, for tests: what they are shown, and what they say of it."""

from dataclasses import dataclass

from matoolkit.admin.approvals import Request, approvals_of_batch
from matoolkit.admin.signing import sign_off, withdraw
from matoolkit.domain.signoff import Caller, Signer
from matoolkit.domain.states import SignOff
from matoolkit.store.batches import BatchRow
from tests.stage import Stage


def person(name: str, *roles: str) -> Signer:
    return Signer(name, frozenset(roles or ("Approver",)), Caller.PERSON)


LOCAL = Signer("local", frozenset({"Admin", "Operator", "Approver"}), Caller.NOBODY)
PIPELINE = Signer("pipeline", frozenset({"Admin", "Approver"}), Caller.APPLICATION)


@dataclass
class Signers:
    """Signs on a stage for people by name, always what is shown now unless a digest is given."""

    stage: Stage

    def shown(self, batch: BatchRow, title: str = "cutover") -> Request:
        """Look at what waits for sign-off."""
        found = approvals_of_batch(self.stage.store, batch.id)
        (one,) = (request for request in found if request.asking.asked.title == title)
        return one

    def approve(self, batch: BatchRow, by: Signer | str, title: str = "cutover", digest: str | None = None) -> Request:
        return self._sign(batch, by, title, digest, SignOff.APPROVE)

    def reject(self, batch: BatchRow, by: Signer | str, title: str = "cutover", reason: str = "not now") -> Request:
        return self._sign(batch, by, title, None, SignOff.REJECT, reason)

    def withdraw(self, batch: BatchRow, by: Signer | str, title: str = "cutover") -> Request:
        number = self.shown(batch, title).asking.asked.phase_execution_id
        return withdraw(self.stage.store, self.stage.bus, batch.id, number, by=_person(by))

    def _sign(
        self,
        batch: BatchRow,
        by: Signer | str,
        title: str,
        digest: str | None,
        decision: SignOff,
        reason: str | None = None,
    ) -> Request:
        request = self.shown(batch, title)
        number = request.asking.asked.phase_execution_id
        seen = digest or request.digest
        store, bus = self.stage.store, self.stage.bus
        return sign_off(store, bus, batch.id, number, decision, by=_person(by), digest=seen, reason=reason)


def _person(by: Signer | str) -> Signer:
    return by if isinstance(by, Signer) else person(by)
