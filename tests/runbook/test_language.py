"""Rules R1 to R5: keys, names, values and sources, as an author meets them."""

import pytest
import yaml

from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.model import Retry
from matoolkit.runbook.parse import lint_runbook, parse_runbook
from matoolkit.runbook.values import Allowance

from .documents import codes, findings, good, phase, step


def test_a_good_runbook_has_no_findings() -> None:
    assert findings(good()) == []


def test_parsing_gives_the_runbook_or_all_that_is_wrong() -> None:
    assert parse_runbook(yaml.safe_dump(good())).name == "move"
    with pytest.raises(InvalidRunbook) as invalid:
        parse_runbook("name: a b\nfoo: 1\n")
    assert {found.code for found in invalid.value.findings} == {"RB101", "RB102", "RB105"}


def test_r1_an_unknown_key_is_an_error_with_position_and_the_nearest_known_key() -> None:
    (found,) = findings({**good(), "retrys": {}})
    assert (found.code, found.column, found.hint) == ("RB101", 1, "did you mean 'retry'?")


@pytest.mark.parametrize(
    "where", ["top", "source", "column", "safeguards", "phase", "step", "poll", "retry", "rollbacks"]
)
def test_r1_keys_that_begin_with_x_are_free_at_any_level(where: str) -> None:
    document = good()
    document["safeguards"] = {"max_removals": 3}
    document["rollbacks"] = {"undo": [step()]}
    document["phases"][0]["steps"][0] |= {
        "poll": {"interval": "1m", "timeout": "1h"},
        "retry": {"max_retries": 1},
        "on_failure": "undo",
    }
    places = {
        "top": document,
        "source": document["data_source"],
        "column": document["data_source"]["multi_valued_columns"][0],
        "safeguards": document["safeguards"],
        "phase": document["phases"][0],
        "step": document["phases"][0]["steps"][0],
        "poll": document["phases"][0]["steps"][0]["poll"],
        "retry": document["phases"][0]["steps"][0]["retry"],
        "rollbacks": document["rollbacks"],
    }
    places[where]["x-note"] = {"anything": [1, 2]}
    assert codes(document) == []


def test_r1_duplicate_keys_are_errors_at_every_level() -> None:
    text = "name: a\nname: b\ndata_source:\n  type: sql\n  type: sql\n"
    duplicates = [(found.line, found.column) for found in findings(text) if found.code == "RB005"]
    assert duplicates == [(2, 1), (5, 3)]


def test_r1_problems_of_every_layer_are_reported_in_one_go() -> None:
    document = good()
    document["retrys"] = 1
    document["data_source"]["connection"] = "https://example.com"
    document["data_source"]["query"] += "; DROP TABLE people"
    document["phases"] = [
        phase("a", "T-5", step(on_failure="nobody", params={"UserId": "{{"})),
        phase("b", "T-0", step(name="bad name"), step(name="x"), step(name="X", worker_id=5)),
    ]
    assert set(codes(document)) == {
        "RB101", "RB112", "RB207", "RB106", "RB204", "RB210", "RB105", "RB202", "RB103", "RB308",
    }  # fmt: skip


def test_r1_what_is_left_out_for_being_broken_causes_no_false_findings() -> None:
    document = good()
    document["rollbacks"] = {"undo": [step(function=5)]}
    document["phases"] = [
        phase("a", "T-", step(output_params={"Made": "Id"})),
        phase("b", "T-0", step(params={"UserId": "{{Made}}", "NewUserPrincipalName": "x"}, on_failure="undo")),
    ]
    assert sorted(codes(document)) == ["RB103", "RB106"]


def test_r1_positions_stay_right_when_a_broken_item_stands_before() -> None:
    text = """\
name: a
data_source: {type: sql, connection: S, query: SELECT Id FROM p, primary_key: Id, batch_time: immediate}
phases:
  - 5
  - name: b
    offset: T-0
    steps:
      - 7
      - {name: s, worker_id: w, function: Remove-EntraUser, params: {UserId: "{{Id}}"}, on_failure: nobody}
"""
    assert [(found.code, found.line, found.column) for found in findings(text)] == [
        ("RB103", 4, 5),
        ("RB103", 8, 9),
        ("RB204", 9, 101),
    ]


@pytest.mark.parametrize("name", ["a b", "ä", "a.b", "a/b", "a\n", "{{x}}", " a", "😀"])
def test_r2_names_have_letters_digits_dashes_and_underscores(name: str) -> None:
    assert "RB105" in codes({**good(), "name": name})


def test_r2_names_have_at_most_a_hundred_characters() -> None:
    assert codes({**good(), "name": "a" * 100}) == []
    assert codes({**good(), "name": "a" * 101}) == ["RB110"]


def test_r2_names_are_unique_without_regard_to_case() -> None:
    document = good()
    document["phases"] = [phase("one", "T-1d", step(name="a"), step(name="A")), phase("ONE", "T-0")]
    document["rollbacks"] = {"undo": [step()], "Undo": [step()]}
    document["phases"][0]["steps"][0]["on_failure"] = "UNDO"
    assert sorted(codes(document)) == ["RB201", "RB202", "RB203"]


def test_r2_the_same_step_name_may_stand_in_two_phases() -> None:
    document = good()
    document["phases"] = [phase("one", "T-1d", step()), phase("two", "T-0", step())]
    assert codes(document) == []


def test_r2_on_failure_finds_a_rollback_whatever_the_case() -> None:
    document = good()
    document["rollbacks"] = {"Undo-It": [step()]}
    document["phases"][0]["steps"][0]["on_failure"] = "undo-it"
    assert codes(document) == []
    runbook = lint_runbook(yaml.safe_dump(document)).runbook
    assert runbook is not None
    assert runbook.rollback("UNDO-IT") is not None
    assert runbook.rollback("other") is None


@pytest.mark.parametrize(
    ("connection", "code"),
    [
        ("https://org.crm.dynamics.com", "RB112"),
        ("Server=tcp:x;Database=y;Password=hunter2", "RB112"),
        ("postgresql://me:hunter2@db/x", "RB112"),
        ("hunter 2", "RB111"),
        ("1ABC", "RB111"),
        ("MATOOLKIT_DATABASE_URL", "RB113"),
        ("matoolkit_anything", "RB113"),
        ("SERVICE_BUS_NAMESPACE", "RB113"),
    ],
)
def test_r4_a_connection_is_the_name_of_a_variable_and_never_repeated(connection: str, code: str) -> None:
    document = good()
    document["data_source"]["connection"] = connection
    (found,) = findings(document)
    assert found.code == code
    assert "hunter" not in f"{found.message} {found.hint}"


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM people",
        "SELECT Id FROM people; SELECT 1",
        "SELECT Id INTO copy FROM people",
        "WITH gone AS (DELETE FROM people RETURNING Id) SELECT Id FROM gone",
        "WITH x AS (SELECT 1 AS Id) UPDATE people SET Id = 1",
        "EXEC steal",
        "SELECT Id FROM people FOR UPDATE",
        "FROM people SELECT Id",
        "SELECT",
        "-- nothing",
        "SELECT ((( ; DROP TABLE people",
        "SELECT ((( DELETE",
        "SELEC Id FROM people",
        "SELECT Id FROM people /*! INTO OUTFILE 'x' */",
    ],
)
def test_r4_the_query_is_one_statement_that_reads(query: str) -> None:
    document = good()
    document["data_source"]["query"] = query
    assert "RB207" in codes(document)


@pytest.mark.parametrize(
    ("source_type", "query"),
    [
        ("dataverse", "SELECT TOP 5 [Id], x = Upn, T, Aliases, Upn FROM people WITH (NOLOCK)"),
        ("databricks", "SELECT `Id`, Upn, T, Aliases FROM a.b.people QUALIFY ROW_NUMBER() OVER (ORDER BY Id) = 1"),
        ("sql", "WITH p AS (SELECT * FROM people) SELECT Id, Upn, T, Aliases FROM p; -- the end"),
        ("sql", "SELECT Id, Upn, T, Aliases FROM a UNION ALL SELECT 1, 2, 3, 'DROP TABLE x; --' FROM b"),
        ("sql", "select * from people"),
        ("sql", "SELECT [Id], [Upn], [T], [Aliases] FROM people"),
        ("sql", "SELECT TOP 5 Id, REPLACE(Upn, 'a', 'b') AS Upn, T, Aliases FROM people"),
        ("sql", "SELECT Id, Upn, T::timestamp AS T, ARRAY[a, b] AS Aliases FROM people"),
    ],
)
def test_r4_queries_of_every_dialect_are_accepted(source_type: str, query: str) -> None:
    document = good()
    document["data_source"] |= {"type": source_type, "query": query}
    if source_type == "databricks":
        document["data_source"]["warehouse_id"] = "WAREHOUSE"
    assert codes(document) == []


def test_r4_a_query_the_parser_cannot_read_is_a_warning_and_its_columns_are_not_judged() -> None:
    document = good()
    document["data_source"]["query"] = "SELECT Something ((( FROM people"
    assert codes(document) == ["RB313"]


def test_r4_columns_may_not_begin_with_an_underscore() -> None:
    document = good()
    document["data_source"]["query"] = "SELECT Id, Upn, T, Aliases, _row_id FROM people"
    assert codes(document) == ["RB208"]


def test_r5_a_step_has_a_timeout_and_a_source_a_cooldown_and_a_zone() -> None:
    document = good()
    document["phases"][0]["steps"][0]["timeout"] = "90m"
    document["data_source"]["batch_time_zone"] = "Europe/Berlin"
    assert codes(document) == []
    document["data_source"] |= {"batch_time": "immediate", "cooldown": "12h"}
    del document["data_source"]["batch_time_zone"], document["data_source"]["batch_time_column"]
    assert codes(document) == []


@pytest.mark.parametrize(
    ("zone", "hint"),
    [("Europe/Berln", "did you mean 'Europe/Berlin'?"), ("CEST", "write an IANA name such as Europe/Berlin or UTC")],
)
def test_r5_an_unknown_zone_gets_a_hint_that_does_no_harm(zone: str, hint: str) -> None:
    document = good()
    document["data_source"]["batch_time_zone"] = zone
    (found,) = findings(document)
    assert (found.code, found.hint) == ("RB114", hint)


@pytest.mark.parametrize("word", ["unreadable", "unreadable-0"])
def test_no_word_is_exempt_from_the_rules(word: str) -> None:
    document = good()
    document["data_source"]["primary_key"] = word
    document["phases"][0]["steps"][0]["function"] = word
    assert codes(document) == ["RB209", "RB307"]


@pytest.mark.parametrize(
    ("written", "limit"), [(10, Allowance(count=10)), ("20%", Allowance(percent=20)), (0, Allowance(count=0))]
)
def test_r5_max_removals_is_a_count_or_a_percentage(written: object, limit: Allowance) -> None:
    document = {**good(), "safeguards": {"max_removals": written}}
    runbook = lint_runbook(yaml.safe_dump(document)).runbook
    assert runbook is not None
    assert runbook.safeguards is not None
    assert runbook.safeguards.max_removals == limit


@pytest.mark.parametrize("written", [-1, "20", "101%", "-5%", 1.5, True, [], "20 %"])
def test_r5_anything_else_is_no_removal_limit(written: object) -> None:
    assert codes({**good(), "safeguards": {"max_removals": written}}) == ["RB115"]


def test_a_steps_retry_replaces_the_global_one_as_a_whole() -> None:
    document = {**good(), "retry": {"max_retries": 3, "interval": "5m"}}
    document["phases"][0]["steps"] = [step(name="a"), step(name="b", retry={"max_retries": 0})]
    runbook = lint_runbook(yaml.safe_dump(document)).runbook
    assert runbook is not None
    inherits, overrides = runbook.phases[0].steps
    assert runbook.retry_of(inherits) == runbook.retry
    assert runbook.retry_of(overrides) == Retry(max_retries=0)
