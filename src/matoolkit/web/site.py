"""The pages as an application beside the admin API, on the same services."""

from collections.abc import Mapping
from types import MappingProxyType

from fastapi import FastAPI

from matoolkit.doors.bodies import BodyLimit
from matoolkit.web import assets, live, signing_in
from matoolkit.web.live import Hub
from matoolkit.web.pages import (
    advance,
    audit,
    batch,
    batch_init,
    batch_retry,
    batch_stop,
    batch_undo,
    batches,
    deadletter,
    deadletters,
    find,
    hold,
    holds,
    late,
    manual,
    matrix,
    member,
    member_acts,
    members,
    now,
    preferences,
    publication,
    query,
    runbook,
    runbooks,
    switching,
    undofailures,
    undoretry,
    workers,
)
from matoolkit.web.refusals import add_refusals, refusal
from matoolkit.web.safety import Safety
from matoolkit.web.serving import Site
from matoolkit.web.topics import TopicOf
from matoolkit.web.visiting import may_send

_PAGES = (
    now,
    find,
    batches,
    batch,
    matrix,
    batch_init,
    batch_retry,
    batch_stop,
    batch_undo,
    holds,
    late,
    member,
    member_acts,
    members,
    hold,
    deadletters,
    deadletter,
    undofailures,
    undoretry,
    workers,
    audit,
    preferences,
    runbooks,
    runbook,
    switching,
    query,
    publication,
    manual,
    advance,
)
_TOPICS: Mapping[str, TopicOf] = MappingProxyType(
    {
        "batch": batch.topic_of,
        "dead-letters": deadletters.topic_of,
        "hold": hold.topic_of,
        "holds": holds.topic_of,
        "member": member.topic_of,
        "now": now.topic_of,
        "runbook": runbook.topic_of,
        "runbooks": runbooks.topic_of,
        "undo-failures": undofailures.topic_of,
        "workers": workers.topic_of,
    }
)


def create_site(site: Site) -> FastAPI:
    """Put the pages together."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.site = site
    app.state.hub = Hub(site, _TOPICS)
    app.add_middleware(BodyLimit, guard=may_send, answer=refusal)
    # The outermost, so that no answer leaves without the headers.
    app.add_middleware(Safety)
    add_refusals(app)
    for part in (assets, live, signing_in, *_PAGES):
        app.include_router(part.router)
    return app
