"""What a runbook is. From this one model come validation, the JSON Schema and the reference page.

A field's description is what people read in their editor and in the reference; what cannot be said about
one field alone is in `rules`.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue

from matoolkit.duration import format_duration
from matoolkit.runbook import values
from matoolkit.runbook.parts import (
    Approver,
    CountOrPercentage,
    Duration,
    EnvironmentVariable,
    FileName,
    MayBeLeftOut,
    Name,
    NonEmptyText,
    Part,
    PhaseOffset,
    Query,
    TimeOfDay,
    TimeZone,
    WorkerId,
)


def _allow_own_keys(schema: dict[str, Any]) -> None:
    """Let a mapping with free names hold `x-` keys too, whose values may have any type."""
    (named,) = schema["patternProperties"].values()
    schema["patternProperties"] = {"^x-": True, values.NAME_PATTERN.replace("^", "^(?!x-)"): named}
    schema["additionalProperties"] = False


class Retry(Part):
    """How often a failed step is tried again, and after which wait."""

    max_retries: int = Field(
        ge=0,
        le=100,
        description="Attempts after the first. `0` switches retrying off, also where a global `retry` is set.",
    )
    interval: MayBeLeftOut[Duration] = Field(None, description="Wait before each of them; `5m` when not given.")


class Poll(Part):
    """Asks again until the worker says that the work is complete."""

    interval: Duration = Field(description="Wait between two questions.")
    timeout: Duration = Field(
        description="How long after the first incomplete answer the step gives up. Giving up is never retried."
    )


class Step(Part):
    """One call of a worker function."""

    name: Name = Field(description="Name, unique among the steps beside it.")
    worker_id: WorkerId = Field(description="Which worker executes it.")
    function: NonEmptyText = Field(description="The function to call. May contain templates.")
    params: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Parameters of the function; may nest, and every value may contain templates.",
    )
    output_params: dict[NonEmptyText, NonEmptyText] = Field(
        default_factory=dict,
        description="Fields of the result to keep for later templates: variable on the left, field of the result on the"
        " right. The field is found whatever its case. Only in phases.",
    )
    on_failure: MayBeLeftOut[Name] = Field(None, description="The rollback to run when the step has failed for good.")
    poll: MayBeLeftOut[Poll] = Field(None, description="For work that is not done when the function returns.")
    retry: MayBeLeftOut[Retry] = Field(None, description="Replaces the global `retry` for this step, as a whole.")
    timeout: MayBeLeftOut[Duration] = Field(
        None,
        description="A job without result for this long counts as lost. Default: `MATOOLKIT_STEP_TIMEOUT`, 24 h.",
    )
    allowed_functions: MayBeLeftOut[Annotated[tuple[NonEmptyText, ...], Field(min_length=1, strict=False)]] = Field(
        None,
        description="For a templated `function`: the names it may resolve to. Any other fails the step.",
    )

    @property
    def known_functions(self) -> tuple[str, ...]:
        """The functions that it may call, as far as the document says."""
        return self.allowed_functions or ((self.function,) if "{{" not in self.function else ())


Steps: TypeAlias = Annotated[tuple[Step, ...], Field(strict=False)]
NonEmptySteps: TypeAlias = Annotated[tuple[Step, ...], Field(strict=False, min_length=1)]


class Pilot(Part):
    """Who goes first: members that a column names, or a number of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "patternProperties": {"^x-": True},
            "oneOf": [{"required": [way]} for way in ("column", "count", "percent")],
        }
    )

    column: MayBeLeftOut[NonEmptyText] = Field(
        None,
        description="Column of the query that says who is a pilot: `true`, `yes`, `y` or `1`, in any case. Anything"
        " else, and nothing, is no.",
    )
    count: MayBeLeftOut[int] = Field(
        None, ge=1, le=1_000_000, description="So many of each batch: those that were in it first."
    )
    percent: MayBeLeftOut[Annotated[int, BeforeValidator(values.percent)]] = Field(
        None, ge=1, le=100, description="Such a part of each batch, rounded up: those that were in it first."
    )


class Rollout(Part):
    """How the members of a batch go through a phase: pilots first, so many at once, until too many fail."""

    pilot_first: bool = Field(
        False, description="The others begin when every pilot has ended the phase or left, and none has failed."
    )
    soak: MayBeLeftOut[Duration] = Field(None, description="How long the others wait after the last pilot.")
    max_failures: MayBeLeftOut[CountOrPercentage] = Field(
        None,
        description="How many members may fail in the phase: a count, or a percentage of those who were active when it"
        " began. When more have failed, nobody else begins it or a later phase before a person opens the gate. With"
        " `pilot_first`, also how many of the pilots; none when not given.",
    )
    on_exceeded: MayBeLeftOut[Literal["stop"]] = Field(
        None, description="`stop`: when too many have failed, those who have begun the phase stop too."
    )
    at_once: MayBeLeftOut[int] = Field(
        None, ge=1, le=1_000_000, description="How many members may be in the phase at the same time."
    )


class Window(Part):
    """The hours in which a phase may begin, by the clock on the wall."""

    days: Annotated[tuple[values.Weekday, ...], Field(strict=False, min_length=1)] = Field(
        values.WEEKDAYS,
        description="Days on which it opens: `[fri, sat]`. Default: every day. A window past midnight belongs to the"
        " day on which it begins.",
        json_schema_extra={"default": None},
    )
    opens: MayBeLeftOut[TimeOfDay] = Field(
        None, alias="from", description='When it opens, in quotes: `"20:00"`. Default: `"00:00"`.'
    )
    closes: MayBeLeftOut[TimeOfDay] = Field(
        None,
        alias="to",
        description='When it closes: `"06:00"`, or `"24:00"`. Up to `from` means the next day. Default: `"24:00"`.',
    )
    zone: MayBeLeftOut[TimeZone] = Field(
        None,
        description="IANA zone of its clock, such as `Europe/Berlin`. Default: `batch_time_zone` of the source, else"
        " UTC.",
    )
    binds: Literal["start", "every_job"] = Field(
        "start",
        description="What waits outside of it: `start`, members that have not begun the phase; `every_job`, also every"
        " next step, retry and poll of those that have.",
    )

    @property
    def opens_at(self) -> int:
        """The minute of the day at which it opens."""
        return self.opens or 0

    @property
    def closes_at(self) -> int:
        """The minute of the day at which it closes; not later than `opens_at`, it is one of the next day."""
        return values.DAY_MINUTES if self.closes is None else self.closes

    @property
    def is_always_open(self) -> bool:
        """Whether nothing waits for it."""
        is_all_day = (self.opens_at, self.closes_at % values.DAY_MINUTES) == (0, 0)
        return is_all_day and set(self.days) == set(values.WEEKDAYS)

    def __str__(self) -> str:
        """Write it in a line: `fri, sat 20:00-06:00 Europe/Berlin`."""
        days = "" if set(self.days) == set(values.WEEKDAYS) else ", ".join(self.days) + " "
        opens, closes = (f"{at // 60:02}:{at % 60:02}" for at in (self.opens_at, self.closes_at))
        every_job = ", every job" if self.binds == "every_job" else ""
        return f"{days}{opens}-{closes} {self.zone or ''}".rstrip() + every_job


class Approval(Part):
    """Sign-offs by people, without which something does not begin."""

    by: MayBeLeftOut[Annotated[tuple[Approver, ...], Field(strict=False, min_length=1)]] = Field(
        None,
        description="Who may sign off: `role:NAME` or the name with which somebody signs in. Default: everybody with"
        " the role `Approver`; administrators have it too.",
    )
    count: int = Field(1, ge=1, le=20, description="How many different people have to sign off. Default: `1`.")
    not_publisher: bool = Field(
        False, description="Whether the sign-off of the person who published the version is refused. Default: `false`."
    )
    not_before: MayBeLeftOut[PhaseOffset] = Field(
        None,
        alias="from",
        description="Sign-offs are taken from then on. Default: as soon as the batch is seen. Not in manual batches.",
    )
    until: MayBeLeftOut[PhaseOffset] = Field(
        None, description="Sign-offs are refused after that, and the phase is late. Not in manual batches."
    )
    valid: MayBeLeftOut[Duration] = Field(
        None, description="A sign-off counts if it is no older than this when it is used. Default: `7d`."
    )

    def __str__(self) -> str:
        """Write it in a line: `2 of role:Approver; until T+4h`."""
        told = [f"{self.count} of {', '.join(self.by or (values.ANY_APPROVER,))}"]
        told += ["not the publisher"] if self.not_publisher else []
        told += [f"from {self.not_before}"] if self.not_before else []
        told += [f"until {self.until}"] if self.until else []
        told += [f"valid for {format_duration(self.valid)}"] if self.valid else []
        return "; ".join(told)


class Phase(Part):
    """Steps that every member of a batch goes through, due at an offset from T."""

    name: Name = Field(description="Name, unique among the phases.")
    offset: PhaseOffset = Field(description="When the phase is due: `T-5d`, `T-4h`, `T-30m`, `T-90s`, `T-0`, `T+2h`.")
    rollout: MayBeLeftOut[Rollout] = Field(None, description="How members go through it. Default: all at once.")
    window: MayBeLeftOut[Window] = Field(None, description="The hours in which the phase may begin. Default: always.")
    steps: NonEmptySteps = Field(description="What each member does, one step after the other.")
    approval: MayBeLeftOut[Approval] = Field(
        None, description="The phase begins when people have signed off its members, its version and T."
    )


class MultiValuedColumn(Part):
    """A column that packs several values into one text."""

    name: NonEmptyText = Field(description="Column of the query.")
    format: Literal["semicolon_delimited", "comma_delimited", "json_array"] = Field(
        description="How the values are packed. Templates see a list."
    )


class DataSource(Part):
    """Where members come from, and how they group into batches."""

    model_config = ConfigDict(
        json_schema_extra={
            "patternProperties": {"^x-": True},
            "if": {"properties": {"type": {"const": "file"}}},
            "then": {"required": ["file"]},
            "else": {"required": ["connection"]},
        }
    )

    type: Literal["dataverse", "databricks", "sql", "file"] = Field(
        description="`dataverse` (TDS endpoint), `databricks` (SQL warehouse), `sql` (any SQLAlchemy URL) or `file`"
        " (a list: CSV or an Excel workbook)."
    )
    connection: MayBeLeftOut[EnvironmentVariable] = Field(
        None,
        description="Required unless it is a file: name of the environment variable with the connection string or"
        " address. Never the value itself.",
    )
    file: MayBeLeftOut[FileName] = Field(
        None,
        description="Files only, and required there: `people.xlsx` or `people.csv`, below the folder that"
        " `MATOOLKIT_FILES` names. The query sees it as the table `rows`.",
    )
    sheet: MayBeLeftOut[NonEmptyText] = Field(
        None, description="Workbooks only: the sheet with the list. Default: the first one."
    )
    warehouse_id: MayBeLeftOut[EnvironmentVariable] = Field(
        None,
        description="Databricks only, and required there: name of the environment variable with the warehouse id.",
    )
    query: Query = Field(
        description="One SELECT or WITH statement; a row for each member. Column names may not begin with `_`."
    )
    primary_key: NonEmptyText = Field(description="Column that identifies a member.")
    batch_time_column: MayBeLeftOut[NonEmptyText] = Field(
        None, description="Column with the cutover time T. Members with the same T form a batch."
    )
    batch_time: MayBeLeftOut[Literal["immediate"]] = Field(
        None, description="Instead of `batch_time_column`: T is now, rounded down to the scheduler's tick."
    )
    batch_time_zone: MayBeLeftOut[TimeZone] = Field(
        None,
        description="IANA zone, such as `Europe/Berlin`, of batch times written without one; else UTC.",
    )
    cooldown: MayBeLeftOut[Duration] = Field(
        None,
        description="Immediate runbooks: when an unchanged member is taken again after success. Default: `24h`.",
    )
    multi_valued_columns: Annotated[tuple[MultiValuedColumn, ...], Field(strict=False)] = Field(
        (), description="Columns that hold several values."
    )


class Safeguards(Part):
    """Limits on what happens without a person."""

    max_removals: MayBeLeftOut[CountOrPercentage] = Field(
        None,
        description="How many members may leave a batch within a day without a person, as a count or a percentage;"
        " beyond it the batch is held. Default: 20 %, or 5 members if that is more, but at most half.",
    )
    late_joiners: MayBeLeftOut[Literal["include", "allow"]] = Field(
        None,
        description="Who joins a batch whose T is more than a tick past: only members that a person includes with"
        " `matoolkit member include`, or all (`allow`). Default: `include`.",
    )
    max_delay: MayBeLeftOut[Duration] = Field(
        None,
        description="How long after it was due a phase may still begin by itself, as in `6h`; after that it is late and"
        " waits for a person. Default: without limit.",
    )
    approval: MayBeLeftOut[Approval] = Field(
        None, description="A hold ends when people have signed off exactly what it stands for."
    )


class Runbook(Part):
    """A migration: where members come from, how they group into batches, and what happens to each member when."""

    name: Name = Field(description="Name of the runbook.")
    description: MayBeLeftOut[str] = Field(None, description="What it is for, in words.")
    data_source: DataSource = Field(description="Where members come from.")
    safeguards: MayBeLeftOut[Safeguards] = Field(None, description="Limits on what happens without a person.")
    pilot: MayBeLeftOut[Pilot] = Field(None, description="Who goes first in phases with `pilot_first`.")
    retry: MayBeLeftOut[Retry] = Field(None, description="Retries of every step that has no `retry` of its own.")
    init: Steps = Field(
        (), description="Steps that run once for a batch before its phases. They cannot use member data."
    )
    init_approval: MayBeLeftOut[Approval] = Field(
        None, description="Init begins when people have signed off the batch, its members and T."
    )
    phases: Annotated[tuple[Phase, ...], Field(strict=False, min_length=1)] = Field(
        description="What happens to each member, and when."
    )
    on_member_removed: Steps = Field((), description="Steps that run for a member who leaves a batch before T.")
    rollbacks: Annotated[dict[Name, NonEmptySteps], BeforeValidator(values.without_own_keys)] = Field(
        default_factory=dict,
        description="Named sequences of steps, for `on_failure` to refer to.",
        json_schema_extra=_allow_own_keys,
    )

    @property
    def takes_late_joiners(self) -> bool:
        """Whether its batches take newcomers by themselves after T (rule T5)."""
        return self.safeguards is not None and self.safeguards.late_joiners == "allow"

    @property
    def max_delay(self) -> timedelta | None:
        """How long after they were due its phases may begin by themselves (rule K5)."""
        return None if self.safeguards is None else self.safeguards.max_delay

    def retry_of(self, step: Step) -> Retry | None:
        """Return how a step is retried: its own `retry` replaces the global one as a whole (rule O7)."""
        return step.retry if step.retry is not None else self.retry

    def every_step(self) -> Iterator[Step]:
        """List all steps: of init, phases, removals and rollbacks."""
        yield from self.init
        for phase in self.phases:
            yield from phase.steps
        yield from self.on_member_removed
        for steps in self.rollbacks.values():
            yield from steps

    def rollback(self, name: str) -> tuple[Step, ...] | None:
        """Return the steps of a rollback, whatever the case in which its name is written."""
        folded = name.casefold()
        return next((steps for known, steps in self.rollbacks.items() if known.casefold() == folded), None)
