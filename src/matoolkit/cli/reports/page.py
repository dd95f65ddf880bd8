"""A report as one page for a manager: no script, nothing fetched, readable on paper, on a phone and by a screen reader.

Everything that comes from data is escaped, and control characters are written out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import Any

from matoolkit.cli import wording
from matoolkit.visible import visible

_Item = Mapping[str, Any]

# State = colour, glyph and word; the order is that of the bar.
_GLYPHS = {
    "done": "✔",
    "under_way": "◐",
    "waiting": "○",
    "failed": "✖",
    "undoing": "◑",
    "undone": "⊘",
    "stopped": "⊘",
    "left": "⊘",
}
_GONE = ("left", "undone")
_NO_SCRIPT = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True, slots=True)
class People:
    """Who is named on the page: those who failed, and those for whom something could not be undone."""

    failed: Sequence[_Item] = ()
    not_undone: Sequence[_Item] = ()


def page_of(summary: _Item, people: People, now: datetime, speed: int | None = None) -> str:
    """Write the page; if time runs fast where the report comes from, it says so (rule U5)."""
    style = (files(__package__) / "page.css").read_text(encoding="utf-8")
    scope = _scope(summary["batches"])
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_NO_SCRIPT}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="color-scheme" content="light dark"><title>Migration report: {scope}</title>',
        f"<style>{style}</style></head><body><main>",
        f'<header><p class="kind">Migration report</p><h1>{scope}</h1>',
        f'<p class="quiet">As of {_text(_moment(now))}{_pace(speed)}</p></header>',
        _headline(summary),
        _states(summary["states"]),
        _phases(summary["phases"]),
        _failures(summary["failures"], summary["phases"]),
        _undo_failures(summary["undoFailures"]),
        _batches(summary["batches"]),
        _failed(people.failed, summary["states"].get("failed", 0)),
        _not_undone(people.not_undone, summary["peopleNotUndone"]),
        "</main></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _scope(batches: Sequence[_Item]) -> str:
    names = list(dict.fromkeys(batch["runbookName"] for batch in batches))
    if len(batches) == 1:
        return f"{_text(names[0])}, batch {batches[0]['id']}"
    told = f"{len(batches):,} batches"
    return f"{_text(names[0])}, {told}" if len(names) == 1 else told


def _headline(summary: _Item) -> str:
    states = summary["states"]
    here = _here(states)
    done, failed = states.get("done", 0), states.get("failed", 0)
    share = f"{done * 100 // here} %" if here else "nobody"
    rest = here - done - failed
    gone = sum(states.values()) - here
    if gone and not here:
        words = [f"is in it any more: all <strong>{gone:,}</strong> people were undone or have left"]
    else:
        words = [f"<strong>{done:,} of {here:,}</strong> people are done"]
    if failed:
        words.append(f'<strong class="bad">{failed:,}</strong> failed')
    if rest:
        words.append(f"{rest:,} {'is' if rest == 1 else 'are'} still to come")
    if left := summary["peopleNotUndone"]:
        words.append(f'for <strong class="bad">{left:,}</strong> something could not be undone')
    return f'<section class="headline"><p class="share">{share}</p><p>{", ".join(words)}.</p></section>'


def _here(states: Mapping[str, int]) -> int:
    return sum(count for state, count in states.items() if state not in _GONE)


def _states(states: Mapping[str, int]) -> str:
    known = [(state, states[state]) for state in _GLYPHS if states.get(state)]
    tiles = "".join(
        f'<li class="{state}"><span class="glyph" aria-hidden="true">{_GLYPHS[state]}</span>'
        f"<b>{count:,}</b> {state.replace('_', ' ')}</li>"
        for state, count in known
    )
    bar = _bar([(state, count) for state, count in known if state not in _GONE], _here(states))
    return f'<section><h2>People</h2>{bar}<ul class="tiles">{tiles}</ul></section>' if known else ""


def _phases(phases: Sequence[_Item]) -> str:
    several = len({phase["runbookName"] for phase in phases}) > 1
    rows = "".join(_phase(phase, with_runbook=several) for phase in phases)
    return f'<section><h2>Phases</h2><ol class="phases">{rows}</ol></section>' if rows else ""


def _phase(phase: _Item, *, with_runbook: bool) -> str:
    people, completed, failed, moving = (phase[name] for name in ("people", "completed", "failed", "underWay"))
    told = f"{completed:,} of {people:,} completed"
    told += f", {failed:,} failed" if failed else ""
    told += f", {moving:,} under way" if moving else ""
    of = f'<span class="quiet"> {_text(phase["runbookName"])}</span>' if with_runbook else ""
    bar = _bar([("done", completed), ("under_way", moving), ("failed", failed)], people)
    offset = _text(wording.offset(phase["offsetMinutes"]))
    head = f'<span><b>{_text(phase["phaseName"])}</b>{of} <span class="quiet">{offset}</span></span>'
    return f"<li><div>{head}<span>{told}</span></div>{bar}</li>"


def _bar(parts: Iterable[tuple[str, int]], whole: int) -> str:
    """Draw a bar; the text beside it says the same."""
    drawn = "".join(
        f'<i class="{state}" style="width:{count * 100 / max(whole, 1):.2f}%"></i>' for state, count in parts if count
    )
    return f'<div class="bar" aria-hidden="true">{drawn}</div>'


def _failures(failures: Sequence[_Item], phases: Sequence[_Item]) -> str:
    if not failures:
        return ""
    several = len({phase["runbookName"] for phase in phases}) > 1
    rows = (
        [
            _cell("People", f"{one['people']:,}", "number"),
            _cell("Error", _error(one["errorType"], one["error"])),
            _cell("Where", _where(one, with_runbook=several)),
            _cell("For example", _text(one["exampleKey"]), "key"),
        ]
        for one in failures
    )
    return _table("What went wrong", ("People", "Error", "Where", "For example"), rows)


def _undo_failures(failures: Sequence[_Item]) -> str:
    rows = (
        [
            _cell("People", f"{one['people']:,}", "number"),
            _cell("Error", _error(one["errorType"], one["error"])),
            _cell("Where", f"{_text(one['sequenceName'])} / {_text(one['stepName'])}"),
            _cell("For example", _text(one["exampleKey"] or "init"), "key"),
        ]
        for one in failures
    )
    return _table("What could not be undone", ("People", "Error", "Where", "For example"), rows) if failures else ""


def _batches(batches: Sequence[_Item]) -> str:
    titles = ("Batch", "Runbook", "T", "Status", "People", "Done", "Failed")
    rows = (
        [
            _cell("Batch", str(one["id"]), "number"),
            _cell("Runbook", _text(one["runbookName"])),
            _cell("T", _text(wording.moment(one["batchStartTime"]) or "by hand")),
            _cell("Status", _text(one["status"].replace("_", " ")) + (", held" if one["isHeld"] else "")),
            _cell("People", f"{_here(one['states']):,}", "number"),
            _cell("Done", f"{one['states'].get('done', 0):,}", "number"),
            _cell("Failed", f"{one['states'].get('failed', 0):,}", "number"),
        ]
        for one in batches
    )
    return _table("Batches", titles, rows) if batches else ""


def _failed(people: Sequence[_Item], count: int) -> str:
    if not people:
        return ""
    rows = (
        [
            _cell("Who", f"<b>{_text(one['memberKey'])}</b>", "key"),
            _cell("Batch", str(one["batchId"]), "number"),
            _cell("Where", _where(one)),
            _cell("Since", _text(wording.moment(one["since"]))),
            _cell("Error", _error(one["errorType"], one["errorMessage"] or "")),
        ]
        for one in people
    )
    return _table("Who failed", ("Who", "Batch", "Where", "Since", "Error"), rows, _more(people, count))


def _not_undone(people: Sequence[_Item], count: int) -> str:
    rows = (
        [
            _cell("Who", f"<b>{_text(one['memberKey'])}</b>", "key"),
            _cell("Batch", str(one["batchId"]), "number"),
            _cell("State", _text(one["state"].replace("_", " "))),
            _cell("Step", _text(one["undoStepName"])),
            _cell("Error", _error(one["undoErrorType"], one["undoErrorMessage"] or "")),
        ]
        for one in people
    )
    titles = ("Who", "Batch", "State", "Step", "Error")
    return _table("For whom something could not be undone", titles, rows, _more(people, count)) if people else ""


def _more(people: Sequence[_Item], count: int) -> str:
    return f"The first {len(people):,} of {count:,}." if count > len(people) else ""


def _where(one: _Item, *, with_runbook: bool = False) -> str:
    places = [one["phaseName"], one["stepName"]]
    names = [one["runbookName"], *places] if with_runbook else places
    return " / ".join(_text(name) for name in names if name)


def _error(kind: str | None, text: str) -> str:
    told = f'<span class="quiet">{_text(kind)}</span> ' if kind else ""
    return f"{told}{_text(text)}"


def _cell(title: str, content: str, kind: str = "") -> str:
    """Write a cell; on a narrow screen its title stands before it."""
    return f'<td data-title="{title}"{f" class={kind}" if kind else ""}><div>{content}</div></td>'


def _table(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in titles)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    note = f'<p class="quiet">{more}</p>' if more else ""
    return (
        f"<section><h2>{title}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}</section>"
    )


def _pace(speed: int | None) -> str:
    return f"; time {_text(wording.speed_text(speed))}" if speed else ""


def _moment(now: datetime) -> str:
    return wording.moment(now.isoformat())


def _text(value: object) -> str:
    return escape(visible(str(value)))
