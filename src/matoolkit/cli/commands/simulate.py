"""`matoolkit simulate`: the whole system in virtual time, with faults, for as many seeds as wanted."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matoolkit.simulate.faults import Fault
    from matoolkit.simulate.many_seeds import Summary
    from matoolkit.simulate.plans import Outcome, Plan

_SEEDS = re.compile(r"([0-9]+)(?:\.\.([0-9]+))?")
_MOST_SHRUNK = 3


def simulate(
    seeds: Annotated[str, typer.Option(help="A seed, or a range of seeds such as 1..1000.")] = "1..100",
    events: Annotated[int, typer.Option(min=0, help="Number of events with faults.")] = 160,
    jobs: Annotated[int, typer.Option(min=1, help="Processes to use.")] = 1,
    members: Annotated[
        int | None, typer.Option(min=1, help="People in the source; as the seed says if left out.")
    ] = None,
    without: Annotated[list[str] | None, typer.Option(help="A kind of fault to leave out; may be repeated.")] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="The bus is outside the state's database, and delivers most messages again.")
    ] = False,
    story: Annotated[Path | None, typer.Option(help="Instead of seeds: tell the calendar of this runbook.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Print the history of every seed.")] = False,
) -> None:
    """Play seeds: scheduler, orchestrators, workers, people and a source, in one thread, while things go wrong.

    Prints what went wrong how often, which moves were made and which situations met. For a seed that breaks a rule:
    the shortest history that is found, and the command that replays it. The exit code is 1 if a seed does.
    """
    from matoolkit.simulate.many_seeds import played, summed_up
    from matoolkit.simulate.plans import Plan

    if story is not None:
        _tell(story)
        return
    kinds = tuple(_kind(name) for name in without or ())
    plans = [Plan(seed, events, members, kinds, apart) for seed in _range(seeds)]
    summary = summed_up(_histories(plans) if history else played(plans, jobs))
    typer.echo("\n".join(_in_words(summary)))
    for failing in summary.failures[:_MOST_SHRUNK]:
        typer.echo("\n".join(_shown(failing)))
    if summary.failures:
        raise typer.Exit(1)


def _tell(path: Path) -> None:
    from matoolkit.simulate.story import Story

    typer.echo("\n".join(Story(path.read_text(encoding="utf-8")).run()))


def _histories(plans: Sequence["Plan"]) -> Iterable["Outcome"]:
    from matoolkit.simulate.many_seeds import play

    for plan in plans:
        outcome = play(plan)
        typer.echo("\n".join([f"seed {plan.seed}", *outcome.history]))
        yield outcome


def _in_words(summary: "Summary") -> Iterable[str]:
    from matoolkit.simulate.coverage import legal_cases
    from matoolkit.simulate.faults import Fault

    failed = len(summary.failures)
    yield f"{summary.seeds} seeds, {failed} failed, {summary.median_events:.0f} events in the middle one"
    yield "Faults:"
    yield from (f"  {summary.faults[kind]:>7}  {kind.value}" for kind in Fault)
    yield f"Moves made and situations met: {len(summary.cases)} of {len(legal_cases())}"
    yield from (f"  never: {machine} {status}, {what}" for machine, status, what in summary.cases_not_met)
    yield from (f"seed {outcome.plan.seed} fails: {outcome.violation}" for outcome in summary.failures)


def _shown(failing: "Outcome") -> Iterable[str]:
    from matoolkit.simulate.shrinking import replay_command, shortest

    found = shortest(failing)
    yield f"\nThe shortest history that was found for seed {failing.plan.seed}:"
    yield from found.history
    yield f"{found.violation}\nReplay it with: {replay_command(found.plan)} --history"


def _range(text: str) -> range:
    match = _SEEDS.fullmatch(text)
    if match is None:
        raise typer.BadParameter("write a seed, such as 42, or a range, such as 1..1000", param_hint="--seeds")
    first = int(match[1])
    return range(first, int(match[2] or first) + 1)


def _kind(name: str) -> "Fault":
    from matoolkit.simulate.faults import Fault
    from matoolkit.simulate.shrinking import slug

    known = {slug(kind): kind for kind in Fault}
    if name not in known:
        raise typer.BadParameter(f"known are {', '.join(known)}", param_hint="--without")
    return known[name]
