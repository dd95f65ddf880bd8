"""The findings that are warnings, RB3xx: the runbook can be used, but probably not as it was meant."""

from matoolkit.runbook.finding_kinds import FindingKind

WARNINGS = (
    FindingKind(
        "RB301",
        "phases out of time order",
        "Phases run by their offset, not in the order in which they are listed. List them in the order of time.",
        "list phases in the order of time",
    ),
    FindingKind(
        "RB302",
        "unused rollback",
        "No step's `on_failure` names it, so it never runs.",
        "remove it, or let a step's 'on_failure' name it",
    ),
    FindingKind(
        "RB303",
        "poll interval longer than its timeout",
        "The step would give up at its second answer. Choose a shorter interval or a longer timeout.",
        "shorten the interval",
    ),
    FindingKind(
        "RB304",
        "unknown variable",
        "The name is neither a special variable, nor an output of a step, nor a column of the query. A step that cannot resolve a variable fails.",
        "add it to the query, or to the 'output_params' of an earlier step",
    ),
    FindingKind(
        "RB305",
        "rollback needs an output that is not there",
        "When this step fails, neither it nor any later step has made the output that its rollback needs, so the rollback fails too.",
        "give this step a rollback that does not need it",
    ),
    FindingKind(
        "RB306",
        "any function may be called",
        "The function's name comes from data. List the names that it may resolve to in `allowed_functions`.",
        "list what it may be in 'allowed_functions'",
    ),
    FindingKind(
        "RB307",
        "unknown function",
        "No worker is known to have this function. Functions of your own are known once a worker has announced them.",
        "`matoolkit runbook functions` lists the built-in ones",
    ),
    FindingKind(
        "RB308",
        "missing parameter",
        "The function cannot run without this parameter.",
        "add it to 'params'",
    ),
    FindingKind(
        "RB309",
        "unknown parameter",
        "The function has no parameter of this name and would refuse the call.",
        "remove it, or correct its name",
    ),
    FindingKind(
        "RB310",
        "key without effect",
        "The key is allowed here, but nothing in this runbook makes use of it.",
        "remove the key",
    ),
    FindingKind(
        "RB311",
        "rollback needs a member, and init has none",
        "Both init and a phase use this rollback. When init fails there is no member whose data it could use.",
        "give init a rollback of its own",
    ),
    FindingKind(
        "RB312",
        "output used before it is made",
        "Every step that makes this output comes later, so it is not there yet when it is needed. Phases run by their offset.",
        "move the step behind the one that makes it",
    ),
    FindingKind(
        "RB313",
        "query not understood",
        "The query could not be parsed well enough to find its columns, so names that refer to them were not checked. It may still be right.",
        "check it by running it",
    ),
    FindingKind(
        "RB314",
        "offset before an immediate T",
        "In an immediate runbook T is the moment at which a member is first seen, so every phase before T is due at once.",
        "write T-0",
    ),
    FindingKind(
        "RB315",
        "names that cannot be told apart",
        "Two columns have the same name, or the names of two columns or two outputs differ only in case. A template could mean either.",
        "give one of them another name",
    ),
    FindingKind(
        "RB316",
        "parameter given twice",
        "Functions ignore the case of parameter names, so one of the two values would be lost.",
        "remove one of the two",
    ),
    FindingKind(
        "RB317",
        "wrong kind of value",
        "The function takes a value of another type, such as `true` or `false` instead of `yes`, or text instead of a mapping. `{Name}` with single braces is a mapping to YAML; a template has two, in quotes.",
        "give it a value of that kind",
    ),
    FindingKind(
        "RB318",
        "secret from data",
        "Everybody who may read the source, the data table or the bus can read the values of a row. Write `secret:NAME` instead, which the worker looks up: then only the name travels. The name itself must be written in the runbook: a step fails if its data begins with `secret:` or chooses the name after it. If the value has to come from a row, the column is masked wherever the system shows rows.",
        "write secret:NAME, which only the worker looks up",
    ),
    FindingKind(
        "RB319",
        "window that opens too late",
        "A phase that could begin only later than `max_delay` after it was due is late and waits for a person. Here that happens whatever T is, or, in an immediate runbook, whenever T falls into the hours in which the window is shut for longer. The same is said of an immediate runbook whose window may open only when the sign-offs of the phase are older than `valid`.",
        "give the window more hours or days, or allow a longer max_delay",
    ),
    FindingKind(
        "RB320",
        "approval that may lack a person",
        "Everybody who is named has to sign off, and the publisher of a version may not. If one of them publishes, nobody can complete the approval.",
        "name one person more under 'by', or a role",
    ),
)
