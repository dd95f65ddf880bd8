"""Watches the simulated tenant, wherever a test runs one, and notes what does not keep to the contract."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from matoolkit.worker.tenant.calls import Answer, Request
from matoolkit.worker.tenant.tenant import Tenant
from tests.calls.checking import HttpApi, exchange_problems


@contextmanager
def watched_tenants() -> Iterator[list[str]]:
    """Note every call and every answer, of all tenants, that breaks the contract, for as long as the context lasts.

    A problem is noted and not raised: it would happen in a thread of the server, and look like a broken connection.
    """
    problems: list[str] = []
    answer = Tenant.answer

    def watched(tenant: Tenant, request: Request) -> Answer:
        given = answer(tenant, request)
        problems.extend(one for one in problems_of(request, given) if one not in problems)
        return given

    with patch.object(Tenant, "answer", watched):
        yield problems


def problems_of(request: Request, answer: Answer) -> Iterator[str]:
    """Compare one call with the part of the contract that it belongs to; the tenant's own controls have none."""
    seen = request.method, request.target, request.body, int(answer.status), answer.body
    match request.segments[0]:
        case "_tenant":
            return iter(())
        case "adminapi":
            return exchange_problems(*seen)
        case _:
            return HttpApi("graph").problems(*seen)
