"""Explanations as they are answered: for what things wait, and what comes next (rules X1 to X5)."""

from collections.abc import Iterable
from datetime import datetime

from pydantic import Field

from matoolkit.admin.explaining import BatchExplained, Line, MemberExplained, PhaseExplained
from matoolkit.admin.upcoming import Coming
from matoolkit.api.shapes.naming import Shape
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.runbook.offsets import Offset


class WhyShape(Shape):
    """One reason to wait."""

    kind: WhyKind
    sentence: str
    detail: str | None = Field(description="More of one member; those who wait for the same differ in it.")
    since: datetime | None
    until: datetime | None = Field(description="When it ends, if that is known; of many the first.")
    ended_by: EndedBy = Field(description="What ends it: a person, time, or something that happens.")
    who: str | None = Field(description="The role, or the people, who may end it.")
    command: str | None = Field(description="The command that ends it or shows more of it.")
    gate_id: int | None


class SampleShape(Shape):
    """One of many members."""

    member_id: int
    member_key: str


class LineShape(WhyShape):
    """Members who wait for the same; somebody who waits for two things is in two lines."""

    phase_name: str | None
    members: int
    samples: list[SampleShape] = Field(description="Five of them at most.")


class PhaseWhyShape(Shape):
    """A phase that has not ended, and for what it waits."""

    phase_id: int
    phase_name: str
    runbook_version: int
    status: PhaseStatus
    due_at: datetime | None
    offset: str
    whys: list[WhyShape]


class ComingShape(Shape):
    """Something that happens by itself."""

    at: datetime
    offset: str | None = Field(description="Where that is relative to T.")
    sentence: str


class UnexplainedShape(Shape):
    """Something open that has no reason to wait: a bug."""

    batch_id: int
    what: str
    things: int


class BatchExplanationShape(Shape):
    """For what a batch waits, or one of its phases."""

    at: datetime
    batch_id: int
    runbook_name: str
    status: BatchStatus
    batch_start_time: datetime | None
    phase_name: str | None = Field(description="The phase that was asked about.")
    whys: list[WhyShape] = Field(description="For what the batch waits as a whole.")
    phases: list[PhaseWhyShape]
    members: int = Field(description="Members for whom something is still to be done.")
    lines: list[LineShape] = Field(description="For what members wait, phase by phase, most members first.")
    next: list[ComingShape] = Field(description="The next three things that happen by themselves.")
    unexplained: list[UnexplainedShape] = Field(description="Always empty; anything else is a bug.")


class MemberExplanationShape(Shape):
    """For what a member waits."""

    at: datetime
    batch_id: int
    runbook_name: str
    batch_start_time: datetime | None
    member_id: int
    member_key: str
    status: MemberStatus
    phase_name: str | None = Field(description="The phase in which it waits, or for which.")
    is_open: bool = Field(description="Whether anything is still to be done for it.")
    whys: list[WhyShape]
    next: list[ComingShape]
    unexplained: list[UnexplainedShape]


def batch_explanation_shape(found: BatchExplained) -> BatchExplanationShape:
    """Answer with what explains a batch."""
    batch = found.batch
    return BatchExplanationShape(
        at=found.at,
        batch_id=batch.id,
        runbook_name=batch.runbook_name,
        status=batch.status,
        batch_start_time=batch.batch_start_time,
        phase_name=found.phase.phase_name if found.phase else None,
        whys=_whys(found.whys),
        phases=[_phase(one) for one in found.phases],
        members=found.members,
        lines=[_line(line) for line in found.lines],
        next=_coming(found.coming),
        unexplained=[UnexplainedShape.model_validate(one) for one in found.unexplained],
    )


def member_explanation_shape(found: MemberExplained) -> MemberExplanationShape:
    """Answer with what explains a member."""
    return MemberExplanationShape(
        at=found.at,
        batch_id=found.batch.id,
        runbook_name=found.batch.runbook_name,
        batch_start_time=found.batch.batch_start_time,
        member_id=found.member.id,
        member_key=found.member.member_key,
        status=found.member.status,
        phase_name=found.phase.phase_name if found.phase else None,
        is_open=found.is_open,
        whys=_whys(found.whys),
        next=_coming(found.coming),
        unexplained=[UnexplainedShape.model_validate(one) for one in found.unexplained],
    )


def _whys(whys: Iterable[Why]) -> list[WhyShape]:
    return [WhyShape.model_validate(why) for why in whys]


def _phase(found: PhaseExplained) -> PhaseWhyShape:
    phase = found.phase
    return PhaseWhyShape(
        phase_id=phase.id,
        phase_name=phase.phase_name,
        runbook_version=phase.runbook_version,
        status=phase.status,
        due_at=phase.due_at,
        offset=str(Offset(phase.offset_minutes)),
        whys=_whys(found.whys),
    )


def _line(line: Line) -> LineShape:
    return LineShape(
        **WhyShape.model_validate(line.why).model_dump(by_alias=False),
        phase_name=line.phase.phase_name if line.phase else None,
        members=line.members,
        samples=[SampleShape.model_validate(one) for one in line.samples],
    )


def _coming(coming: Iterable[Coming]) -> list[ComingShape]:
    return [ComingShape.model_validate(one) for one in coming]
