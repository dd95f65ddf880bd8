"""The boundaries at which a process may die, in both buses (ADR 13)."""

from matoolkit.crashpoints import crash_point

RECEIVED = crash_point("bus.received")
SETTLED = crash_point("bus.settled")
# Only where an answer and the settling of what it answers are two calls.
ANSWERED = crash_point("bus.answered")
