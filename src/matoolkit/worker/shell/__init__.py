"""PowerShell that stays signed in: processes that are connected to Graph and Exchange once and then do many jobs (W5).

Nothing here has met a real PowerShell yet; docs/reference/tenant.md lists what is assumed.
"""

from matoolkit.worker.shell.exchange import SecureExchange, ShellExchange
from matoolkit.worker.shell.pool import Connection, Shell, ShellSignIn

__all__ = ["Connection", "SecureExchange", "Shell", "ShellExchange", "ShellSignIn"]
