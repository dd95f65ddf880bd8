"""The scheduler as a function app."""

from matoolkit.hosting.functions.scheduler import scheduler_app

app = scheduler_app()
