"""Whether the database understands every statement of the store."""

from collections.abc import Iterator

from matoolkit.errors import StoreError
from matoolkit.store.checkup.findings import Checked, fine, wrong
from matoolkit.store.checkup.samples import Samples, public_functions
from matoolkit.store.datanames import DataTableName
from matoolkit.store.datatables import DataTable, open_data_table
from matoolkit.store.sql.rehearsal import LONG_AGO, MADE_UP, Rehearsal, rehearsing
from matoolkit.store.sql.transaction import Store

# Of no row: what is asked for is not there, and nothing that is there is locked.
_NUMBER = 2_147_483_000
_DATA_TABLE = "runbook_matoolkit_db_check_v1"
_TODO = "report it with this text; the version or the rights of this database may be the cause"


def check_statements(store: Store) -> Iterator[Checked]:
    """Run each statement once, with made-up values, in a transaction that is rolled back."""
    with rehearsing(store) as rehearsal:
        refused = 0
        place = DataTableName(_DATA_TABLE, store.dialect.data_schema)
        made = _data_table(rehearsal, place)
        if isinstance(made, Checked):
            yield made
            return
        samples = Samples(_NUMBER, LONG_AGO, place, made)
        for name, function in public_functions():
            if function is open_data_table:
                continue  # a data table was made and altered with it
            function(**samples.arguments_for(function, rehearsal.played))
            for error in rehearsal.runner.refused[refused:]:
                yield wrong("statement", name, error.message, _TODO)
            refused = len(rehearsal.runner.refused)
    if not refused:
        yield fine("statement", "all", f"{rehearsal.runner.count} statements were understood")


def _data_table(rehearsal: Rehearsal, place: DataTableName) -> DataTable | Checked:
    try:
        with rehearsal.real.part():
            open_data_table(rehearsal.real, place, [MADE_UP])
            return open_data_table(rehearsal.real, place, [MADE_UP, "Email", "Aliases"])
    except StoreError as error:
        todo = "only the scheduler makes data tables: run this as its identity, or give it the right to"
        return wrong("statement", "data table", error.message, todo)
