"""Whether a database will do, found out on the database itself before it is needed.

Nothing that is tried here lasts: every transaction is rolled back.
"""

from matoolkit.store.checkup.check import check_database
from matoolkit.store.checkup.findings import Checked, Outcome

__all__ = ["Checked", "Outcome", "check_database"]
