"""A simulated tenant: a server that answers the Graph and Exchange calls of the functions (rule W9).

Which of its behaviours Microsoft documents and which are assumed: docs/reference/tenant.md.
"""

from matoolkit.worker.tenant.keeping import StateFile
from matoolkit.worker.tenant.server import TenantServer
from matoolkit.worker.tenant.tenant import Tenant

__all__ = ["StateFile", "Tenant", "TenantServer"]
