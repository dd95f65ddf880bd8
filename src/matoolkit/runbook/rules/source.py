"""The source: one query that reads, and keys that fit it and each other."""

from collections.abc import Iterator

from matoolkit.runbook.model import DataSource
from matoolkit.runbook.rules.context import Check
from matoolkit.runbook.templates import Path

SOURCE: Path = ("data_source",)


def t_is_given_once(check: Check) -> None:
    """Report a source that says twice, or not at all, where the batch time comes from."""
    written = {"batch_time", "batch_time_column"} & set(check.keys_at(SOURCE))
    if check.parts.data_source is None or len(written) == 1:
        return
    if written:
        message = "'batch_time' and 'batch_time_column' exclude each other"
        check.report("RB205", (*SOURCE, "batch_time"), message, "keep one of them", key=True)
    else:
        hint = "add 'batch_time_column: COLUMN' or 'batch_time: immediate'"
        check.report("RB205", SOURCE, "'data_source' does not say when batches start", hint)


def it_says_where_members_are(check: Check) -> None:
    """Report a source without the key that says where it is."""
    source = check.parts.data_source
    if source is None or not check.is_sound((*SOURCE, "type")):
        return
    key = "file" if source.type == "file" else "connection"
    if key not in check.keys_at(SOURCE):
        check.report("RB102", SOURCE, f"'data_source' has no '{key}'", f"add '{key}:' to it")


def a_file_is_one_table(check: Check) -> None:
    """Report a query that looks for another table than `rows` in a file (rule U4)."""
    source = check.parts.data_source
    if source is None or source.type != "file" or check.query is None:
        return
    for table in sorted(check.query.tables):
        if table.casefold() != "rows":
            check.report("RB219", (*SOURCE, "query"), f"a file has no table '{table}'", "write FROM rows")


def databricks_has_a_warehouse(check: Check) -> None:
    """Report a Databricks source without warehouse."""
    source = check.parts.data_source
    if source and source.type == "databricks" and "warehouse_id" not in check.keys_at(SOURCE):
        hint = "add 'warehouse_id:' with the name of an environment variable"
        check.report("RB206", SOURCE, "a databricks source needs 'warehouse_id'", hint)


def query_only_reads(check: Check) -> None:
    """Report a query that is not one reading statement, and warn of one that cannot be read (rule R4)."""
    if check.query is None:
        return
    path = (*SOURCE, "query")
    if check.query.refusal:
        check.report(
            "RB207",
            path,
            f"the query is refused: {check.query.refusal}",
            "write one SELECT or WITH statement",
        )
    elif not check.query.is_understood:
        check.report("RB313", path, "the query could not be read, so its columns were not checked")


def columns_are_not_reserved(check: Check) -> None:
    """Report columns whose names belong to the system (rule R4)."""
    for column in check.columns or ():
        if column.startswith("_"):
            hint = f"give it another name: {column} AS {column.lstrip('_') or 'name'}"
            check.report("RB208", (*SOURCE, "query"), f"column '{column}' begins with '_'", hint)


def columns_can_be_told_apart(check: Check) -> None:
    """Warn of columns whose names differ only by case, or not at all: a template could mean either (rule R6)."""
    seen: set[str] = set()
    for column in check.columns or ():
        if column.casefold() in seen:
            hint = f"give it another name: {column} AS other_name"
            check.report("RB315", (*SOURCE, "query"), f"the query returns two columns '{column}'", hint)
        seen.add(column.casefold())


def named_columns_are_in_the_query(check: Check) -> None:
    """Report keys that refer to a column that the query does not return."""
    source = check.parts.data_source
    if source is None or check.columns is None:
        return
    for path, column in _named_columns(check, source):
        if check.is_sound(path) and column.casefold() not in check.folded_columns:
            hint = check.suggestions.hint(column, check.columns) or f"the query returns {', '.join(check.columns[:10])}"
            check.report("RB209", path, f"the query returns no column '{column}'", hint)


def multi_valued_columns_make_sense(check: Check) -> None:
    """Report columns that are listed twice, or that can only have one value."""
    source = check.parts.data_source
    if source is None:
        return
    single = {name.casefold() for name in (source.primary_key, source.batch_time_column) if name}
    seen: set[str] = set()
    for path, column in check.parts.items((*SOURCE, "multi_valued_columns"), source.multi_valued_columns):
        folded, place = column.name.casefold(), (*path, "name")
        if folded in single:
            message = f"column '{column.name}' has one value: it is the primary key or the batch time"
            check.report("RB215", place, message, "remove it from the list")
        if folded in seen:
            check.report("RB215", place, f"column '{column.name}' is listed already", "remove one of the two")
        seen.add(folded)


def keys_have_an_effect(check: Check) -> None:
    """Warn of keys that this kind of source, or this kind of batch, makes no use of."""
    source = check.parts.data_source
    if source is None or not check.is_sound(SOURCE):
        return
    for key, why in _of_no_use_to(source):
        if getattr(source, key) is not None:
            _without_effect(check, (*SOURCE, key), why)
    if source.batch_time == "immediate":
        if source.batch_time_zone:
            _without_effect(check, (*SOURCE, "batch_time_zone"), "an immediate runbook reads no batch times")
        for key, why in _OF_NO_USE_AT_ONCE.items():
            if check.parts.safeguards and getattr(check.parts.safeguards, key) is not None:
                _without_effect(check, ("safeguards", key), why)
    elif source.cooldown:
        _without_effect(check, (*SOURCE, "cooldown"), "only an immediate runbook takes a member again")


def _of_no_use_to(source: DataSource) -> Iterator[tuple[str, str]]:
    """List keys that this type of source makes no use of, and why."""
    if source.type != "databricks":
        yield "warehouse_id", "only a databricks source has a warehouse"
    if source.type == "file":
        yield "connection", "a file is found by its name"
    else:
        yield "file", "only a source of type file reads one"
        yield "sheet", "only a workbook has sheets"
    if (source.file or "").casefold().endswith(".csv"):
        yield "sheet", "only a workbook has sheets"


_OF_NO_USE_AT_ONCE = {
    "max_removals": "in an immediate runbook a missing row removes no member",
    "late_joiners": "in an immediate runbook T is the time at which a member joins",
}


def _named_columns(check: Check, source: DataSource) -> Iterator[tuple[Path, str]]:
    yield (*SOURCE, "primary_key"), source.primary_key
    if source.batch_time_column:
        yield (*SOURCE, "batch_time_column"), source.batch_time_column
    for path, column in check.parts.items((*SOURCE, "multi_valued_columns"), source.multi_valued_columns):
        yield (*path, "name"), column.name


def _without_effect(check: Check, path: Path, why: str) -> None:
    check.report("RB310", path, f"'{path[-1]}' has no effect: {why}", "remove the key", key=True)


RULES = (
    t_is_given_once,
    it_says_where_members_are,
    a_file_is_one_table,
    databricks_has_a_warehouse,
    query_only_reads,
    columns_are_not_reserved,
    columns_can_be_told_apart,
    named_columns_are_in_the_query,
    multi_valued_columns_make_sense,
    keys_have_an_effect,
)
