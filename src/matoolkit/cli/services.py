"""What every command that runs a part of the system begins with."""

from matoolkit.settings import Settings, load_settings
from matoolkit.telemetry import configure_logging


def settings_of_service() -> Settings:
    """Read the settings, and let the log go where they say."""
    settings = load_settings(Settings)
    configure_logging(settings.log_level, settings.log_format)
    return settings
