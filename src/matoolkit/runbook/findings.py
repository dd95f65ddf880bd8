"""Every finding of the linter, by its code: how bad it is, what it means, how to mend it.

Codes are stable: a code never changes its meaning. RB0xx is about YAML, RB1xx about single keys and values, RB2xx
about what they mean together, RB3xx are warnings. The reference page is generated from here.
"""

from dataclasses import dataclass

from matoolkit.errors import Finding, Severity, UnknownFindingCode
from matoolkit.runbook.presentable import presentable
from matoolkit.runbook.templates import Path


@dataclass(frozen=True, slots=True)
class FindingKind:
    """What a code stands for."""

    code: str
    title: str
    explanation: str

    @property
    def severity(self) -> Severity:
        """A warning if its code is RB3xx, else an error."""
        return Severity.WARNING if self.code.startswith("RB3") else Severity.ERROR


_KINDS = (
    # YAML
    ("RB001", "not UTF-8", "Runbooks are UTF-8 text. Save the file in that encoding."),
    (
        "RB002",
        "unprintable character",
        "NUL bytes and other control characters are not text. Remove the character.",
    ),
    ("RB003", "too large", "A runbook has at most 1 MiB. Data belongs in the source, not in the runbook."),
    (
        "RB004",
        "not valid YAML",
        (
            "The document cannot be read as YAML from here on, so nothing after it was checked. The usual causes are"
            " indentation, a missing `: `, and values with `: `, `#`, `{` or `*` in them that need quotes."
        ),
    ),
    (
        "RB005",
        "duplicate key",
        "YAML parsers silently keep one of two equal keys. Here both are wrong until one is removed.",
    ),
    ("RB006", "empty document", "There is nothing in the file but white space and comments."),
    (
        "RB007",
        "not a mapping",
        "A runbook begins with keys such as `name:`, not with a list or a single value.",
    ),
    (
        "RB008",
        "too deep, too many values, or endless",
        (
            "Nesting is limited to 50 levels and a document to 250,000 values. Aliases count each time they are used, and"
            " one that contains itself has no end."
        ),
    ),
    (
        "RB009",
        "more than one document",
        "A file holds one runbook. Put the part after `---` in a file of its own.",
    ),
    (
        "RB010",
        "unsupported YAML",
        (
            "Tags (`!name`), keys that are not text and merges of anything but mappings are not supported. Anchors,"
            " aliases and `<<` merges of mappings are."
        ),
    ),
    ("RB011", "tab", "YAML is indented with spaces. Replace the tab."),
    (
        "RB012",
        "template without quotes",
        'To YAML a `{` opens a mapping. A value that begins with a template needs quotes: `UserId: "{{UserId}}"`.',
    ),
    # Keys and values
    (
        "RB101",
        "unknown key",
        "The key means nothing at this place. If it is a note of your own, let its name begin with `x-`.",
    ),
    (
        "RB102",
        "missing key",
        "A required key is not there. The position is that of the mapping that lacks it.",
    ),
    (
        "RB103",
        "wrong type",
        "The value is of another kind than the key needs, such as a number instead of text.",
    ),
    ("RB104", "value not allowed", "The key takes one of a few values, and this is none of them."),
    (
        "RB105",
        "bad name",
        "Names of runbooks, phases, steps, rollbacks and workers have letters, digits, `-` and `_`.",
    ),
    (
        "RB106",
        "bad offset",
        "An offset is `T-` or `T+`, a number and one of `d h m s`; `T-0` is the cutover itself.",
    ),
    (
        "RB107",
        "bad duration",
        "A duration is a number and one of `s m h d`, longer than zero: `30s`, `15m`, `2h`, `7d`.",
    ),
    ("RB108", "empty", "The key is there, but what it needs is not: no value, no text, or no items."),
    ("RB109", "out of range", "The number is smaller or larger than makes sense."),
    ("RB110", "too long", "The text is longer than the system stores."),
    (
        "RB111",
        "bad environment variable",
        "`connection` and `warehouse_id` hold the name of an environment variable.",
    ),
    (
        "RB112",
        "connection instead of its name",
        (
            "Runbooks are stored, versioned and shown. Addresses and credentials stay in the environment of the scheduler;"
            " the runbook holds the name of the variable."
        ),
    ),
    (
        "RB113",
        "the system's own setting",
        "A runbook may not read through the connection of the system itself. Give the source a variable of its own.",
    ),
    (
        "RB114",
        "unknown time zone",
        "Zones are named as in the IANA database: `Europe/Berlin`, `America/New_York`, `UTC`.",
    ),
    ("RB115", "bad removal limit", "`max_removals` is a count such as `10` or a percentage such as `20%`."),
    # Meaning
    ("RB201", "duplicate phase", "Two phases have the same name. Names are compared without regard to case."),
    (
        "RB202",
        "duplicate step",
        "Two steps of the same sequence have the same name, compared without regard to case.",
    ),
    ("RB203", "duplicate rollback", "Two rollbacks have the same name but for its case."),
    ("RB204", "unknown rollback", "`on_failure` names a sequence that is not under `rollbacks`."),
    (
        "RB205",
        "when is T?",
        "A runbook has either `batch_time_column` or `batch_time: immediate`: one of them, and not both.",
    ),
    (
        "RB206",
        "missing warehouse",
        "A `databricks` source runs its query on a warehouse and needs `warehouse_id`.",
    ),
    (
        "RB207",
        "not one query",
        (
            "The query is one statement that reads: it begins with SELECT or WITH, and neither writes nor is followed by"
            " another."
        ),
    ),
    (
        "RB208",
        "reserved column",
        "Columns that begin with `_` are the system's. Give the column another name with AS.",
    ),
    (
        "RB209",
        "column not in the query",
        "A key refers to a column that the query does not return. Columns are compared without regard to case.",
    ),
    (
        "RB210",
        "malformed template",
        (
            "Braces do not match, or there is no name between them. Every `{{` needs its `}}`. JSON inside a text is better"
            " written as a nested mapping."
        ),
    ),
    (
        "RB211",
        "no member in init",
        (
            "Init runs once for a batch, before any member: its steps, and the rollbacks that only init uses, may use"
            " `_batch_id`, `_batch_start_time`, `_runbook_name` and `_runbook_version`, and nothing else."
        ),
    ),
    (
        "RB212",
        "outputs that nobody can use",
        (
            "`output_params` are kept for a member's later steps. In init there is no member; after a rollback or a removal"
            " there is no later step."
        ),
    ),
    (
        "RB213",
        "password in the runbook",
        (
            "A runbook is stored, versioned and shown. Write `secret:NAME`, which the worker looks up, or a template that is"
            " the whole value."
        ),
    ),
    (
        "RB214",
        "bad variable name",
        "Names that begin with `_` are the system's own, and braces cannot be part of a name.",
    ),
    (
        "RB215",
        "bad multi-valued column",
        "A column is listed twice, or it is the primary key or the batch time, which have one value each.",
    ),
    (
        "RB216",
        "list inside a text",
        "A multi-valued column is a list. It can be a parameter as a whole, but not a part of a longer text.",
    ),
    (
        "RB217",
        "function not allowed by its own step",
        "The step's `function` is written out, and it is not among its `allowed_functions`.",
    ),
    (
        "RB218",
        "unknown special variable",
        "Names that begin with `_` are the system's own, and this is not one of them, so it can never be resolved.",
    ),
    # Warnings
    (
        "RB301",
        "phases out of time order",
        "Phases run by their offset, not in the order in which they are listed. List them in the order of time.",
    ),
    ("RB302", "unused rollback", "No step's `on_failure` names it, so it never runs."),
    (
        "RB303",
        "poll interval longer than its timeout",
        "The step would give up at its second answer. Choose a shorter interval or a longer timeout.",
    ),
    (
        "RB304",
        "unknown variable",
        (
            "The name is neither a special variable, nor an output of a step, nor a column of the query. A step that cannot"
            " resolve a variable fails."
        ),
    ),
    (
        "RB305",
        "rollback needs an output that is not there",
        "When this step fails, neither it nor any later step has made the output that its rollback needs, so the rollback fails too.",
    ),
    (
        "RB306",
        "any function may be called",
        "The function's name comes from data. List the names that it may resolve to in `allowed_functions`.",
    ),
    (
        "RB307",
        "unknown function",
        "No worker is known to have this function. Functions of your own are known once a worker has announced them.",
    ),
    ("RB308", "missing parameter", "The function cannot run without this parameter."),
    ("RB309", "unknown parameter", "The function has no parameter of this name and would refuse the call."),
    ("RB310", "key without effect", "The key is allowed here, but nothing in this runbook makes use of it."),
    (
        "RB311",
        "rollback needs a member that init has not",
        "Both init and a phase use this rollback. When init fails there is no member whose data it could use.",
    ),
    (
        "RB312",
        "output used before it is made",
        (
            "Every step that makes this output comes later, so it is not there yet when it is needed. Phases run by their"
            " offset."
        ),
    ),
    (
        "RB313",
        "query not understood",
        (
            "The query could not be read well enough to tell its columns, so names that refer to them were not checked. It"
            " may still be right."
        ),
    ),
    (
        "RB314",
        "offset before an immediate T",
        (
            "In an immediate runbook T is the moment at which a member is first seen, so whatever is due before T is due at"
            " once."
        ),
    ),
    (
        "RB315",
        "names that cannot be told apart",
        "Two columns have the same name, or two columns or two outputs have names that differ only by case. A template could mean either.",
    ),
    (
        "RB316",
        "parameter given twice",
        "Functions do not tell parameters apart by case, so one of the two values would be lost.",
    ),
    (
        "RB317",
        "wrong kind of value",
        "The function takes something else, such as `true` or `false` where `yes` is written, or text where a mapping is. `{Name}` with single braces is a mapping to YAML; a template has two, in quotes.",
    ),
)

FINDING_KINDS = {code: FindingKind(code, title, explanation) for code, title, explanation in _KINDS}


def finding(
    code: str, message: str, hint: str | None = None, *, line: int = 1, column: int = 1, path: Path = ()
) -> Finding:
    """Build a finding; how bad it is, its code knows. What it repeats of the document is made safe to show."""
    hint = presentable(hint) if hint else None
    return Finding(code, FINDING_KINDS[code].severity, presentable(message), line, column, hint, path)


def kind_of_finding(code: str) -> FindingKind:
    """Look up what a code stands for, as a person may have typed it."""
    try:
        return FINDING_KINDS[code.strip().upper()]
    except KeyError:
        raise UnknownFindingCode(code, FINDING_KINDS) from None
