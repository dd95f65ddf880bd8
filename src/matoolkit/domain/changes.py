"""What a tick changes in the membership of a runbook's batches (rules T5 to T7)."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from matoolkit.domain.holds import Hold
from matoolkit.domain.remarks import Remarks
from matoolkit.domain.snapshot import KnownMember


@dataclass(frozen=True, slots=True)
class Join:
    """Somebody who becomes a member, and the membership in another batch that ends with it (`moved`)."""

    key: str
    leaves: KnownMember | None = None


@dataclass(frozen=True, slots=True)
class Return:
    """A former member that comes back into its old row, afresh if a person undid it.

    `leaves` is the membership in another batch that ends.
    """

    key: str
    member_id: int
    leaves: KnownMember | None = None
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class Refresh:
    """A member whose row has changed."""

    key: str
    member_id: int


@dataclass(slots=True)
class BatchChanges:
    """What changes in one batch.

    `movers` leave it before the batch of their new time can take them, `dropouts` leave a batch that has not begun.
    """

    joins: list[Join] = field(default_factory=list)
    returns: list[Return] = field(default_factory=list)
    removals: list[int] = field(default_factory=list)
    movers: list[KnownMember] = field(default_factory=list)
    dropouts: list[int] = field(default_factory=list)
    left_source: list[int] = field(default_factory=list)
    back_in_source: list[int] = field(default_factory=list)
    refreshes: list[Refresh] = field(default_factory=list)

    @property
    def coming(self) -> list[Join | Return]:
        """Everybody who becomes a member."""
        return [*self.joins, *self.returns]

    def drop(self, keys: Collection[str]) -> None:
        """Leave out people who were to become members."""
        self.joins = [join for join in self.joins if join.key not in keys]
        self.returns = [back for back in self.returns if back.key not in keys]

    def __len__(self) -> int:
        joining = len(self.joins) + len(self.returns)
        noted = len(self.left_source) + len(self.back_in_source) + len(self.refreshes)
        return joining + len(self.removals) + len(self.movers) + len(self.dropouts) + noted


@dataclass(slots=True)
class Changes:
    """All that changes: starts and holds of batches, who is in them, and batches that do not exist yet.

    `approved_removals` leave with the hold that stood for them. Among the batches that are held before they begin,
    `beginnings` begin now, for a reason, and `emptied` have no member left and no future. A new batch may be held from
    the beginning: `new_holds`, by start. `ignored` counts the rows whose time belongs to a batch that has ended.
    """

    reschedules: dict[int, datetime] = field(default_factory=dict)
    holds: list[Hold] = field(default_factory=list)
    releases: dict[int, str] = field(default_factory=dict)
    approved_removals: dict[int, list[int]] = field(default_factory=dict)
    batches: dict[int, BatchChanges] = field(default_factory=dict)
    new: dict[datetime, list[Join]] = field(default_factory=dict)
    new_holds: dict[datetime, Hold] = field(default_factory=dict)
    beginnings: dict[int, str] = field(default_factory=dict)
    emptied: list[int] = field(default_factory=list)
    ignored: int = 0
    remarks: Remarks = field(default_factory=Remarks)

    @property
    def moving(self) -> set[int]:
        """Every membership that ends because somebody has another time now."""
        parts = self.batches.values()
        coming = [
            *(join for joins in self.new.values() for join in joins),
            *(one for part in parts for one in part.coming),
        ]
        return {one.leaves.id for one in coming if one.leaves} | {one.id for part in parts for one in part.movers}

    def of(self, batch_id: int) -> BatchChanges:
        """Return the changes of a batch, to add to."""
        return self.batches.setdefault(batch_id, BatchChanges())
