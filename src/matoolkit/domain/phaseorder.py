"""The order in which members go through phases (rules O3 and V4)."""

from typing import TypeAlias

# Phases go by version, then from the largest offset before T to the latest after it, then as the runbook lists them.
PhaseOrder: TypeAlias = tuple[int, int, int]


def phase_order(runbook_version: int, offset_minutes: int, phase_index: int) -> PhaseOrder:
    """Say where a phase stands in the order in which a member goes through phases."""
    return runbook_version, -offset_minutes, phase_index
