"""The orchestrator as a function app."""

from matoolkit.hosting.functions.orchestrator import orchestrator_app

app = orchestrator_app()
