"""Coordination: events and results in, decisions and jobs out."""

from matoolkit.orchestrator.orchestrator import Orchestrator

__all__ = ["Orchestrator"]
