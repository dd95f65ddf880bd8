"""Execution: jobs in, results out.

A worker decides nothing about batches; it only logs the number of a job's batch. Nothing here touches a database: where
the bus is in the state database, the bus opens it.

What a function needs is here: `from matoolkit.worker import Context, FunctionFailed, Secret, Throttled, function`.
"""

from matoolkit.worker.context import Context, Job
from matoolkit.worker.failures import FunctionFailed, InvalidParameters, Throttled
from matoolkit.worker.registry import Registry, function
from matoolkit.worker.signature import Secret

__all__ = ["Context", "FunctionFailed", "InvalidParameters", "Job", "Registry", "Secret", "Throttled", "function"]
