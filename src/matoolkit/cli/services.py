"""What every command that runs a part of the system begins with."""

import os
from collections.abc import Mapping

from matoolkit.settings import Settings, load_settings
from matoolkit.telemetry import configure_logging


def settings_of_service(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings, and let the log go where they say."""
    settings = load_settings(Settings, environ)
    configure_logging(settings.log_level, settings.log_format)
    return settings
