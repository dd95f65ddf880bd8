"""Execution: jobs in, results out. A worker knows nothing of batches, and touches no database."""
