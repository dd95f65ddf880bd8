"""The people in the source: who is in it, with which start, and what is wrong with it today."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from matoolkit.errors import SourceFailed
from matoolkit.ports import Piece
from matoolkit.simulate.runbooks import COLUMNS, PILOT

# How often somebody leaves by mistake.
_MISTAKES = 0.5
_MOVES_WHAT_IS_SIGNED = 0.4
_CITIES = ("Bern", "Oslo", "Rome")


class Crowd:
    """A source whose rows change, and that may be down, show too little, or show people twice."""

    def __init__(self, rng: Random, now: datetime, members: int, waves: int = 3) -> None:
        self._rng = rng
        self.starts = [now + timedelta(hours=hours) for hours in (3, 6, 27)]
        self._year = now.year
        self.rows: dict[str, tuple[datetime, str]] = {}
        self._next = 0
        self.is_down = False
        self.hidden: set[str] = set()
        self.busy: list[str] = []
        self.failed: list[str] = []
        # Starts of waves for which something is signed off: another time voids that.
        self.signed: list[datetime] = []
        # The person who left by mistake and is back soon, while their work still runs.
        self.mistaken: str | None = None
        self.is_missed = False
        self.doubled: set[str] = set()
        for _ in range(members):
            self.join(self.starts[:waves])

    def pieces(self, query: str) -> Iterator[Piece]:
        """Return the rows of today; every third person is a pilot, if the query asks for that."""
        if self.is_down:
            raise SourceFailed("the source is away")
        columns = (*COLUMNS, PILOT) if PILOT in query else COLUMNS
        rows: list[tuple[Any, ...]] = []
        for key, (start, city) in self.rows.items():
            if key not in self.hidden:
                row = (key, start.isoformat(), city, *(_pilot(key) for _ in columns[len(COLUMNS) :]))
                rows += [row] * (2 if key in self.doubled else 1)
        yield Piece(columns, rows)

    def change(self, now: datetime) -> str:
        """Let something change in the source, and say what."""
        if self.mistaken is not None and self.is_missed:
            return self._return(self.mistaken)
        if self.signed and self._rng.random() < _MOVES_WHAT_IS_SIGNED:
            return self.shift_wave(self._rng.choice(self.signed))
        change = self._rng.choice(
            [
                *(
                    self.join,
                    self.leave,
                    self.leave,
                    self.leave,
                    self.follow,
                    self.another_time,
                    self.another_time,
                    self.shift_wave,
                ),
                *(self.leave_behind, self.mistype, self.touch),
            ]
        )
        # People enter only waves that are still to come.
        ahead = [start for start in self.starts if start > now]
        if not ahead:
            self.starts.append(now.replace(minute=0, second=0, microsecond=0) + timedelta(days=1))
        return change()

    def join(self, starts: Sequence[datetime] = ()) -> str:
        """Let somebody new be in the source, with one of some starts or of the latest."""
        key = f"p{self._next}"
        self._next += 1
        self.rows[key] = (self._rng.choice(starts or self.starts[-3:]), self._rng.choice(_CITIES))
        return f"{key} joins"

    def leave(self) -> str:
        """Let somebody be gone, who may return."""
        if self.hidden and self._rng.random() < 0.6:
            return self._return(self._somebody(self.hidden))
        key = self._somebody(self.rows)
        self.hidden.add(key)
        self.mistaken = key if self._rng.random() < _MISTAKES else None
        return f"{key} leaves"

    def _return(self, key: str) -> str:
        self.hidden.discard(key)
        self.mistaken, self.is_missed = None, False
        return f"{key} returns"

    def another_time(self) -> str:
        """Give somebody another start."""
        key, start = self._somebody(self.rows), self._rng.choice(self.starts[-3:])
        self.rows[key] = (start, self.rows[key][1])
        return f"{key} moves to {start:%d %H:%M}"

    def shift_wave(self, wave: datetime | None = None) -> str:
        """Give everybody of a start another one."""
        old, later = wave or self._rng.choice(self.starts[-3:]), timedelta(hours=self._rng.choice([3, 24, 26]))
        for key, (start, city) in self.rows.items():
            if start == old:
                self.rows[key] = (old + later, city)
        self.starts.append(old + later)
        return f"wave {old:%d %H:%M} moves by {later}"

    def leave_behind(self) -> str:
        """Give everybody of a start another one, except one person whose row is forgotten."""
        key = self._somebody(self.rows)
        row = self.rows[key]
        if row[0] not in self.starts[-3:]:
            return self.another_time()
        said = self.shift_wave()
        self.rows[key] = row
        return f"{said}, without {key}"

    def follow(self) -> str:
        """Remove one more person from a wave that people already left: a wave that leaves one by one."""
        starts = {self.rows[key][0] for key in self.hidden if key in self.rows}
        others = [key for key, (start, _) in self.rows.items() if start in starts and key not in self.hidden]
        if not others:
            return self.leave()
        key = self._rng.choice(sorted(others))
        self.hidden.add(key)
        return f"{key} follows those who left"

    def mistype(self) -> str:
        """Mistype the year of somebody's start, or correct what was mistyped."""
        wrong = [key for key, (start, _) in self.rows.items() if start.year < self._year]
        key = self._rng.choice(wrong) if wrong and self._rng.random() < 0.7 else self._somebody(self.rows)
        start, city = self.rows[key]
        self.rows[key] = (start.replace(year=self._year - (start.year == self._year)), city)
        return f"{key} has {self.rows[key][0]:%Y-%m-%d}"

    def touch(self) -> str:
        """Change a person's data, preferably of one who failed: the data may have been the cause."""
        failed = [key for key in self.failed if key in self.rows]
        key = self._rng.choice(failed) if failed else self._somebody(self.rows)
        self.rows[key] = (self.rows[key][0], self._rng.choice(_CITIES))
        return f"{key} changes"

    def mend(self) -> None:
        """Let the source work again; people who left stay away."""
        self.is_down = False
        self.doubled.clear()

    def _somebody(self, keys: Collection[str]) -> str:
        """Choose a person, preferably one for whom something runs: that is when changes hurt."""
        busy = [key for key in self.busy if key in keys]
        return self._rng.choice(busy if busy and self._rng.random() < 0.7 else sorted(keys))


def _pilot(key: str) -> str:
    return "yes" if int(key.removeprefix("p")) % 3 == 0 else "no"
