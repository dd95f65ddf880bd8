"""`matoolkit worker check`: whether a worker could do its work, before it does any."""

import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from matoolkit.cli.files import read_file
from matoolkit.cli.output import stderr
from matoolkit.cli.session import Json, Output
from matoolkit.cli.tables import Column, Form, print_items, status
from matoolkit.errors import InvalidSettings, SignInNeeded
from matoolkit.runbook.parse import parse_runbook
from matoolkit.runbook.source import MAX_BYTES
from matoolkit.settings import WorkerSettings, load_settings
from matoolkit.words import counted

if TYPE_CHECKING:
    from matoolkit.worker.checking import Checked

NOT_READY = 1
# A person who looks does not want to wait as long as a job would.
_MOST_RETRIES = 2

_COLUMNS = (
    Column("CHECK", "kind", is_whole=True),
    Column("NAME", "name"),
    status("STATUS", "outcome"),
    Column("ANSWER", "said"),
    Column("FUNCTIONS", "functions"),
)

WorkerId = Annotated[
    str | None, typer.Option("--id", help="Which jobs to take; WORKER_ID when not given.", show_default=False)
]


def check(
    runbook: Annotated[
        str | None,
        typer.Option("--runbook", metavar="FILE", help="Only what this runbook calls.", show_default=False),
    ] = None,
    worker_id: Annotated[
        str | None,
        typer.Option("--id", help="Only steps of this worker; WORKER_ID when not given.", show_default=False),
    ] = None,
    output: Output = Form.TABLE,
    *,
    json: Json = False,
) -> None:
    """Sign in to the tenant, say which permissions and roles are there and which are missing, and read one of each.

    Nothing is changed. Exit code 0: nothing is missing, as far as can be known. 1: something is. 4: it cannot sign in.
    """
    settings = worker_settings(worker_id)
    checks = _checks(settings, None if runbook is None else _names(runbook, settings.worker_id))
    print_items(
        [{**asdict(one), "functions": list(one.functions)} for one in checks], _COLUMNS, Form.JSON if json else output
    )
    _print_summary(checks)
    if any(one.kind == "sign-in" and not one.is_good for one in checks):
        raise typer.Exit(SignInNeeded.exit_code)
    if not all(one.is_good for one in checks):
        raise typer.Exit(NOT_READY)


def worker_settings(worker_id: str | None) -> WorkerSettings:
    """Read the settings of a worker here; its id may be given instead."""
    given = {} if worker_id is None else {"WORKER_ID": worker_id}
    return load_settings(WorkerSettings, {**os.environ, **given})


def _names(file: str, worker_id: str | None) -> list[str]:
    """List the functions that a runbook calls, in its order; for a name from data, its allowed functions."""
    runbook = parse_runbook(read_file(file, MAX_BYTES))
    steps = [one for one in runbook.every_step() if worker_id is None or one.worker_id == worker_id]
    return list(dict.fromkeys(name for step in steps for name in step.known_functions))


def _checks(settings: WorkerSettings, names: list[str] | None) -> "list[Checked]":
    from matoolkit.system import functions_of_worker, tenant_opened
    from matoolkit.worker.checking import Checked, Outcome, check_tenant
    from matoolkit.worker.clients.choice import missing_settings
    from matoolkit.worker.masking import Masking
    from matoolkit.worker.shell.choice import powershell_program

    missing = missing_settings(settings)
    if missing and not settings.simulated_tenant_url:
        raise InvalidSettings(
            ["this worker has no tenant to check"], hint=f"set {', '.join(missing)}, or SIMULATED_TENANT_URL"
        )
    registry, broken = functions_of_worker(settings)
    known = {one.name.casefold(): one for one in registry}
    wanted = list(known) if names is None else [name.casefold() for name in names]
    masking = Masking()
    masking.guard(logging.getLogger("matoolkit"))
    patient = settings.model_copy(update={"max_retry_count": min(settings.max_retry_count, _MOST_RETRIES)})
    with tenant_opened(patient, masking) as clients:
        functions = [known[name] for name in wanted if name in known]
        found = list(check_tenant(clients, functions, settings.target_tenant_id))
    found += (Checked("function", file.path.name, Outcome.FAILED, file.why) for file in broken)
    if settings.create_mail_users_with == "powershell" and powershell_program() is None:
        said = "CREATE_MAIL_USERS_WITH is powershell: install PowerShell 7 and its module ExchangeOnlineManagement"
        found.append(Checked("program", "pwsh", Outcome.MISSING, said))
    for name in names or ():
        if name.casefold() not in known:
            found.append(Checked("function", name, Outcome.MISSING, "this worker has no such function"))
    return [replace(one, said=masking.outgoing(one.said)) for one in found]


def _print_summary(checks: "Sequence[Checked]") -> None:
    console = stderr()
    for one in checks:
        if not one.is_good:
            console.print(f"{one.outcome}: {one.kind} {one.name}: {one.said}")
    counts = Counter(str(one.outcome) for one in checks)
    console.print(f"{counted(len(checks), 'check')}: {', '.join(f'{count} {word}' for word, count in counts.items())}")
