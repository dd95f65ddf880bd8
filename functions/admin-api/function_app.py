"""The admin API as a function app."""

from matoolkit.hosting.functions.api import api_app

app = api_app()
