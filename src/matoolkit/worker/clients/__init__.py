"""Graph and Exchange, as thin as they can be: one call each, ids checked, throttling respected, nothing secret told."""

from matoolkit.worker.clients.choice import open_clients
from matoolkit.worker.clients.connection import Clients, connect, connect_to_simulation, open_http
from matoolkit.worker.clients.exchange import Exchange, ExchangeClient
from matoolkit.worker.clients.failures import ObjectMissing, ObjectTaken, Rejected, TenantFailed
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.tokens import CertificateTokens, NumberedTokens, TenantTokens

__all__ = [
    "CertificateTokens",
    "Clients",
    "Exchange",
    "ExchangeClient",
    "GraphClient",
    "NumberedTokens",
    "ObjectMissing",
    "ObjectTaken",
    "Rejected",
    "TenantFailed",
    "TenantTokens",
    "connect",
    "connect_to_simulation",
    "open_clients",
    "open_http",
]
