"""Both clients of a tenant, made together; every thread of a worker uses the same ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from matoolkit.backoff import Backoff
from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.worker.clients import exchange as exchange_api
from matoolkit.worker.clients import graph as graph_api
from matoolkit.worker.clients.api import Api
from matoolkit.worker.clients.exchange import ExchangeClient
from matoolkit.worker.clients.failures import SignInFailed
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.tokens import NumberedTokens, SimulatedTokens, TenantTokens

_MOST_CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=256)
_CONNECT_SECONDS = 15
# A cmdlet may take minutes; Exchange's other clients wait as long.
_EXCHANGE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class SignIn:
    """How the worker signs in to one API."""

    api: str
    tokens: TenantTokens


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of one tenant; a worker without tenant signs in nowhere."""

    graph: GraphClient
    exchange: ExchangeClient
    http: httpx.Client
    sign_ins: tuple[SignIn, ...] = ()

    def close(self) -> None:
        """Close the connections."""
        self.http.close()


def connect(
    tokens_for: Callable[[str], TenantTokens],
    organization: str,
    clock: Clock,
    backoff: Backoff,
    *,
    cloud: Cloud = PUBLIC,
    simulation: str | None = None,
    http: httpx.Client | None = None,
) -> Clients:
    """Return the clients of a tenant; `tokens_for` gives the tokens of a scope, `organization` is its first domain.

    A simulation is at one address for both APIs. A given connection also decides how long an answer may take.
    """
    patience = None if http is not None else httpx.Timeout(_EXCHANGE_SECONDS, connect=_CONNECT_SECONDS)
    http = open_http() if http is None else http
    graph, exchange = simulation or cloud.graph, simulation or cloud.exchange
    tokens = tokens_for(f"{cloud.graph}/.default"), tokens_for(f"{cloud.exchange}/.default")
    return Clients(
        GraphClient(Api("Graph", graph, tokens[0], http, clock, backoff, graph_api.judged)),
        ExchangeClient(
            Api("Exchange", exchange, tokens[1], http, clock, backoff, exchange_api.judged, patience), organization
        ),
        http,
        (SignIn("Graph", tokens[0]), SignIn("Exchange", tokens[1])),
    )


def connect_to_simulation(
    url: str,
    clock: Clock,
    backoff: Backoff,
    http: httpx.Client | None = None,
    *,
    organization: str = "contoso.example",
) -> Clients:
    """Return the clients of a simulated tenant."""
    numbered = NumberedTokens()
    # The address is on this machine, where no proxy leads.
    carrier = open_http(use_proxies=False) if http is None else http

    def tokens_for(scope: str) -> TenantTokens:
        return SimulatedTokens(
            numbered, lambda: _granted(carrier, url, "graph" if PUBLIC.graph in scope else "exchange")
        )

    return connect(tokens_for, organization, clock, backoff, simulation=url, http=carrier)


def _granted(http: httpx.Client, url: str, api: str) -> Mapping[str, Any]:
    try:
        return dict(http.get(f"{url}/_tenant/application").raise_for_status().json()[api])
    except (httpx.HTTPError, KeyError, TypeError, ValueError):
        raise SignInFailed(f"there is no simulated tenant at {url}") from None


def open_http(seconds: float = 60, *, use_proxies: bool = True) -> httpx.Client:
    """Return what carries the calls. A redirect is not followed: the token would go along."""
    timeout = httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
    return httpx.Client(timeout=timeout, limits=_MOST_CONNECTIONS, follow_redirects=False, trust_env=use_proxies)
