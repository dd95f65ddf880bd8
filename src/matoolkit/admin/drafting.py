"""Documents before they are published: what the linter finds, what they would change, and publishing what was shown."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from matoolkit.admin.catalogue import known_catalogue
from matoolkit.admin.publishing import Published, publish
from matoolkit.admin.runbooks import Document, document_of
from matoolkit.domain.states import OverdueBehavior
from matoolkit.errors import PreviewChanged, UnknownVersion
from matoolkit.runbook.catalogue import Catalogue
from matoolkit.runbook.differences import Differences, differences
from matoolkit.runbook.parse import Report, lint_runbook, strictly
from matoolkit.store import Store
from matoolkit.store.runbooks import RunbookRow, active_runbook, latest_version


@dataclass(frozen=True, slots=True)
class Options:
    """How a document is to be published; with a name it must be the document's own."""

    name: str | None = None
    overdue_behavior: OverdueBehavior = OverdueBehavior.RERUN
    rerun_init: bool = False
    force: bool = False
    enable: bool = False
    is_strict: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A version and what was found in it, and what another one does differently; nothing if one cannot be used."""

    row: RunbookRow
    report: Report
    differences: Differences | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that is not published: what was found in it, what publishing it would do, and what it changes."""

    report: Report
    planned: Published | None = None
    against: Comparison | None = None


def draft_of(store: Store, content: str | bytes, options: Options, *, by: str, now: datetime) -> Draft:
    """Look at a document as publishing would, and compare it with the version that it replaces."""
    with store.reading() as tx:
        catalogue = known_catalogue(tx)
        report = lint_runbook(content, catalogue)
        if options.is_strict:
            report = strictly(report)
        if report.runbook is None:
            return Draft(report)
        name = report.runbook.name
        replaced = active_runbook(tx, name) or latest_version(tx, name)
        planned = _publish(store.within(tx), content, options, by, now, dry_run=True)
    return Draft(report, planned, compare(replaced, report, catalogue) if replaced else None)


def compare(row: RunbookRow, report: Report, catalogue: Catalogue) -> Comparison:
    """Say what a document does differently than a version does."""
    before = lint_runbook(row.yaml_content, catalogue)
    told = differences(before.runbook, report.runbook) if before.runbook and report.runbook else None
    return Comparison(row, before, told)


def changes_between(store: Store, name: str, version: int, since: int) -> tuple[Document, Comparison]:
    """Return a version of a runbook, and what it does differently than an earlier one."""
    document = document_of(store, name, version)
    before = next((row for row in document.versions if row.version == since), None)
    if before is None:
        raise UnknownVersion(document.row.name, since, document.versions[0].version)
    with store.reading() as tx:
        catalogue = known_catalogue(tx)
    return document, compare(before, document.report, catalogue)


def publish_as_shown(
    store: Store,
    content: str | bytes,
    options: Options,
    *,
    by: str,
    now: datetime,
    is_as_shown: Callable[[Draft], bool],
) -> Published:
    """Publish a document if that does what a person was shown, and nothing else."""
    with store.transaction() as tx:
        inside = store.within(tx)
        if not is_as_shown(draft_of(inside, content, options, by=by, now=now)):
            raise PreviewChanged
        return _publish(inside, content, options, by, now)


def _publish(
    store: Store, content: str | bytes, options: Options, by: str, now: datetime, *, dry_run: bool = False
) -> Published:
    return publish(
        store,
        content,
        by=by,
        now=now,
        overdue_behavior=options.overdue_behavior,
        rerun_init=options.rerun_init,
        force=options.force,
        enable=options.enable,
        name=options.name,
        dry_run=dry_run,
    )
