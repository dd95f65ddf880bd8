"""Both clients of a tenant, made together; every thread of a worker uses the same ones."""

from collections.abc import Callable
from dataclasses import dataclass

import httpx

from matoolkit.clock import Clock
from matoolkit.worker.clients.api import Api
from matoolkit.worker.clients.exchange import ExchangeClient, is_busy
from matoolkit.worker.clients.graph import GraphClient, is_passing
from matoolkit.worker.clients.pauses import RetryLimits
from matoolkit.worker.clients.tokens import NumberedTokens, Tokens

GRAPH = "https://graph.microsoft.com"
EXCHANGE = "https://outlook.office365.com"
_MOST_CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=256)


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of one tenant."""

    graph: GraphClient
    exchange: ExchangeClient
    http: httpx.Client

    def close(self) -> None:
        """Close the connections."""
        self.http.close()


def connect(
    tokens_for: Callable[[str], Tokens],
    organization: str,
    clock: Clock,
    limits: RetryLimits,
    *,
    graph: str = GRAPH,
    exchange: str = EXCHANGE,
    http: httpx.Client | None = None,
) -> Clients:
    """Return the clients of a tenant; `tokens_for` gives the tokens of a scope, `organization` is its first domain."""
    http = open_http() if http is None else http
    tokens = tokens_for(f"{GRAPH}/.default"), tokens_for(f"{EXCHANGE}/.default")
    return Clients(
        GraphClient(Api("Graph", graph, tokens[0], http, clock, limits, is_passing=is_passing)),
        ExchangeClient(Api("Exchange", exchange, tokens[1], http, clock, limits, is_busy), organization),
        http,
    )


def connect_to_simulation(url: str, clock: Clock, limits: RetryLimits, http: httpx.Client | None = None) -> Clients:
    """Return the clients of a simulated tenant, which is at one address for both APIs."""
    tokens = NumberedTokens()
    # The address is on this machine, where no proxy leads.
    http = open_http(use_proxies=False) if http is None else http
    return connect(lambda _: tokens, "contoso.example", clock, limits, graph=url, exchange=url, http=http)


def open_http(seconds: float = 60, *, use_proxies: bool = True) -> httpx.Client:
    """Return what carries the calls. A redirect is not followed: the token would go along."""
    timeout = httpx.Timeout(seconds, connect=min(seconds, 15))
    return httpx.Client(timeout=timeout, limits=_MOST_CONNECTIONS, follow_redirects=False, trust_env=use_proxies)
