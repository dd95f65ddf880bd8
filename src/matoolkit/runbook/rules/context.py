"""What every rule gets: the parts of the runbook, their places, and a way to report."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from matoolkit.errors import Finding
from matoolkit.runbook.catalogue import Catalogue
from matoolkit.runbook.findings import finding_at
from matoolkit.runbook.model import Step
from matoolkit.runbook.query import QueryFacts, query_facts
from matoolkit.runbook.secrecy import SecretParameters, secret_parameters
from matoolkit.runbook.structure import ReadableParts
from matoolkit.runbook.suggestions import Suggestions
from matoolkit.runbook.templates import Path, TemplateSyntaxProblem, Use, texts, uses
from matoolkit.runbook.tree import Node

# Longer than any job could carry.
MAX_TEMPLATE = 32_768


class Place(Enum):
    """The place of a step, which decides what it may use and what happens when it fails."""

    INIT = "init"
    PHASE = "phases"
    REMOVAL = "on_member_removed"
    ROLLBACK = "rollbacks"


@dataclass(frozen=True)
class StepAt:
    """A step, its path in the document, and the phase or rollback that it belongs to."""

    step: Step
    path: Path
    place: Place
    owner: str = ""
    has_name: bool = True

    @property
    def label(self) -> str:
        """How to speak of the step."""
        return f"step '{self.step.name}'" if self.has_name else "this step"

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The variables that the step needs, with their full paths; a malformed template needs none."""
        found: list[Use] = []
        for path, text in self.texts():
            if len(text) > MAX_TEMPLATE:
                continue
            try:
                found += uses(text, path)
            except TemplateSyntaxProblem:
                continue
        return tuple(found)

    def texts(self) -> Iterator[tuple[Path, str]]:
        """List the texts of the step that may be templates."""
        yield (*self.path, "function"), self.step.function
        yield from texts(self.step.params, (*self.path, "params"))


@dataclass
class Check:
    """One run of the rules over one document."""

    root: Node
    parts: ReadableParts
    catalogue: Catalogue
    suggestions: Suggestions
    findings: list[Finding] = field(default_factory=list)

    def report(self, code: str, path: Path, message: str, hint: str | None = None, *, key: bool = False) -> None:
        """Say what is wrong with the value at a path, or with its key."""
        self.findings.append(finding_at(self.root, code, path, message, hint, key=key))

    def is_sound(self, path: Path) -> bool:
        """Whether nothing at a path, or anywhere below it, was broken."""
        return path not in self._touched

    def has_lost(self, section: str, *keys: str) -> bool:
        """Whether broken items or keys of a section were left out, so that a rule about all of them would mislead.

        An output that was left out ends in `output_params` and its name, so the last two parts of a path count.
        """
        lost = [path for path in self.parts.repaired if path[0] == section]
        whole, items = any(len(path) == 1 for path in lost), any(isinstance(path[-1], int) for path in lost)
        return whole or items or any(not set(keys).isdisjoint(path[-2:]) for path in lost)

    def keys_at(self, path: Path) -> tuple[str, ...]:
        """List the keys that are written at a path, broken or not."""
        node = self.root
        for part in path:
            entries = node.value
            if not isinstance(entries, dict) or part not in entries:
                return ()
            node = entries[str(part)].node
        return tuple(node.value) if isinstance(node.value, dict) else ()

    @cached_property
    def steps(self) -> tuple[StepAt, ...]:
        """Every step that could be read, in the order of the document's sections."""
        return tuple(self._steps())

    @cached_property
    def query(self) -> QueryFacts | None:
        """What is known about the query."""
        source = self.parts.data_source
        return query_facts(source.query, source.type) if source else None

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """The columns of the query, if they are known."""
        return self.query.columns if self.query else None

    @cached_property
    def folded_columns(self) -> frozenset[str]:
        """Those of them that are known, without regard to case."""
        return frozenset(column.casefold() for column in self.columns or ())

    @cached_property
    def secret_parameters(self) -> SecretParameters:
        """What is secret in the functions that are known."""
        return secret_parameters(self.catalogue.values())

    @cached_property
    def outputs(self) -> dict[str, list[StepAt]]:
        """The steps that make each output, by the variable's name without regard to case."""
        makers: dict[str, list[StepAt]] = {}
        for at in self.steps:
            if at.place is Place.PHASE:
                for variable in at.step.output_params:
                    makers.setdefault(variable.casefold(), []).append(at)
        return makers

    @cached_property
    def rollback_users(self) -> dict[str, set[Place]]:
        """From where each rollback is used, by its name without regard to case."""
        users: dict[str, set[Place]] = {}
        for at in self.steps:
            if at.step.on_failure is not None and at.place in {Place.INIT, Place.PHASE}:
                users.setdefault(at.step.on_failure.casefold(), set()).add(at.place)
        return users

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The order in which phases run: by offset, then as they are listed (rule O3)."""
        phases = sorted(enumerate(self.parts.phases), key=lambda item: (-item[1].offset.minutes, item[0]))
        return {phase.name: rank for rank, (_, phase) in enumerate(phases)}

    def moment(self, at: StepAt) -> tuple[int, int]:
        """When a step of a phase runs, in relation to the others."""
        return self._ranks[at.owner], int(at.path[-1])

    @cached_property
    def _touched(self) -> frozenset[Path]:
        return frozenset(path[:length] for path in self.parts.repaired for length in range(1, len(path) + 1))

    def knows_no_member(self, at: StepAt) -> bool:
        """Whether a step only ever runs for a batch as a whole."""
        if at.place is Place.ROLLBACK and not self.has_lost("phases", "steps", "on_failure"):
            return self.rollback_users.get(at.owner.casefold()) == {Place.INIT}
        return at.place is Place.INIT

    def _steps(self) -> Iterator[StepAt]:
        parts = self.parts
        for path, step in parts.items(("init",), parts.init):
            yield self._step(step, path, Place.INIT)
        for phase_path, phase in parts.items(("phases",), parts.phases):
            for path, step in parts.items((*phase_path, "steps"), phase.steps):
                yield self._step(step, path, Place.PHASE, phase.name)
        for path, step in parts.items(("on_member_removed",), parts.on_member_removed):
            yield self._step(step, path, Place.REMOVAL)
        for name, steps in parts.rollbacks.items():
            for path, step in parts.items(("rollbacks", name), steps):
                yield self._step(step, path, Place.ROLLBACK, name)

    def _step(self, step: Step, path: Path, place: Place, owner: str = "") -> StepAt:
        return StepAt(step, path, place, owner, has_name=self.is_sound((*path, "name")))
