"""What a runbook's query returns now: some rows, the batches that they would make, and the rows set aside."""

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Form
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.previewing import Preview, preview_query
from matoolkit.admin.queries import latest_runbook
from matoolkit.doors.problems import problem
from matoolkit.errors import MatoolkitError
from matoolkit.runbook.parse import parse_runbook
from matoolkit.web.documents import shown_line
from matoolkit.web.pages.runbook import RunbookName
from matoolkit.web.rendering import Frame, fragment, is_fragment, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer

router = APIRouter(prefix="/runbooks/{name}/query")

_LIMITS = (5, 10, 25)
_MOST_COLUMNS = 20
_MOST_GROUPS = 60
_LONGEST_QUERY = 4000


@router.get("")
def get_query(request: Request, serving: Serving, viewer: Deciding, name: RunbookName) -> Response:
    """Show the query, and a button that runs it."""
    return _shown(request, serving, viewer, name)


@router.post("")
def run_query(
    request: Request,
    serving: Serving,
    viewer: Changing,
    name: RunbookName,
    limit: Annotated[int, Form(), Field(ge=0, le=_LIMITS[-1])] = _LIMITS[1],
) -> Response:
    """Run the query; nothing is changed."""
    services = serving.services
    try:
        found = preview_query(services.store, services.open_source, name, limit)
    except MatoolkitError as failed:
        if is_fragment(request):
            raise
        told = problem(failed)
        return _shown(request, serving, viewer, name, status=told.status, problem=told)
    told_of: dict[str, Any] = {"limit": limit, **_cut(found)}
    if is_fragment(request):
        return fragment(viewer, "query/found.html", **told_of)
    return _shown(request, serving, viewer, name, **told_of)


def _cut(found: Preview) -> dict[str, Any]:
    """Return as much of it as a page takes."""
    columns = list(found.columns)
    return {
        "found": found,
        "columns": columns[:_MOST_COLUMNS],
        "more_columns": len(columns) - _MOST_COLUMNS,
        "groups": list(islice(found.groups.items(), _MOST_GROUPS)),
        "more_groups": len(found.groups) - _MOST_GROUPS,
        "set_aside": sum(found.set_aside.values()),
    }


def _readable(query: str) -> str:
    return "\n".join(shown_line(line) for line in query.strip()[:_LONGEST_QUERY].splitlines())


def _shown(request: Request, site: Site, viewer: Viewer, name: str, *, status: int = 200, **more: Any) -> Response:
    with site.services.store.reading() as tx:
        row = latest_runbook(tx, name)
    source = parse_runbook(row.yaml_content).data_source
    frame = Frame(f"Query of {row.name}", "runbooks", f"matoolkit query preview {row.name}", styles=("runbook.css",))
    around: dict[str, Any] = {
        "row": row,
        "source": source,
        "query": _readable(source.query),
        "limits": _LIMITS,
        "limit": _LIMITS[1],
    }
    around |= {"found": None, "problem": None, **more}
    return page(request, viewer, "query.html", frame, status=status, **around)
