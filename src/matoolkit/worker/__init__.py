"""Execution: jobs in, results out. A worker knows nothing of batches, and touches no database.

What a function needs is here: `from matoolkit.worker import Context, FunctionFailed, Secret, Throttled, function`.
"""

from matoolkit.worker.context import Context
from matoolkit.worker.failures import FunctionFailed, InvalidParameters, Throttled
from matoolkit.worker.registry import Registry, function
from matoolkit.worker.signature import Secret

__all__ = ["Context", "FunctionFailed", "InvalidParameters", "Registry", "Secret", "Throttled", "function"]
