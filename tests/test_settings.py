from datetime import timedelta

import pytest

from matoolkit.client_settings import read_client_settings
from matoolkit.errors import InvalidSettings
from matoolkit.settings import Settings, WorkerSettings, is_own_variable, load_settings


def test_an_empty_environment_gives_the_embedded_system() -> None:
    settings = load_settings(Settings, {})
    assert settings.database_url.get_secret_value() == "sqlite:///.matoolkit/matoolkit.db"
    assert (settings.bus, settings.tick_seconds, settings.sweep_seconds) == ("sql", 300, 30)
    assert settings.step_timeout == settings.throttle_limit == timedelta(hours=24)


def test_settings_are_read_from_their_variables() -> None:
    environ = {
        "MATOOLKIT_TICK_SECONDS": "60",
        "MATOOLKIT_STEP_TIMEOUT": "90m",
        "MATOOLKIT_LOG_FORMAT": "json",
    }
    settings = load_settings(Settings, environ)
    assert (settings.tick_seconds, settings.step_timeout, settings.log_format) == (
        60,
        timedelta(minutes=90),
        "json",
    )


def test_worker_settings_have_the_names_workers_are_used_to() -> None:
    settings = load_settings(WorkerSettings, {"WORKER_ID": "worker-01", "MAX_PARALLELISM": "8"})
    assert (settings.worker_id, settings.max_parallelism, settings.max_retry_count) == ("worker-01", 8, 5)


def test_a_misspelt_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_settings(Settings, {"MATOOLKIT_TICK_SECOND": "60"})
    assert refused.value.message == "MATOOLKIT_TICK_SECOND is not a setting"
    assert refused.value.hint == "MATOOLKIT_TICK_SECOND: did you mean 'MATOOLKIT_TICK_SECONDS'?"


def test_everything_wrong_is_said_at_once() -> None:
    environ = {"MATOOLKIT_TICK_SECONDS": "soon", "MATOOLKIT_STEP_TIMEOUT": "1 day", "MATOOLKIT_NOPE": "1"}
    with pytest.raises(InvalidSettings) as refused:
        load_settings(Settings, environ)
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize(
    ("name", "value"), [("MATOOLKIT_STEP_TIMEOUT", "hunter2"), ("MATOOLKIT_TICK_SECONDS", "hunter2")]
)
def test_a_refused_value_is_not_repeated(name: str, value: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_settings(Settings, {name: value})
    assert value not in str(refused.value)
    assert name in str(refused.value)


def test_secrets_do_not_show_when_settings_are_printed() -> None:
    environ = {
        "MATOOLKIT_DATABASE_URL": "postgresql+psycopg://me:hunter2@db/x",
        "MATOOLKIT_ACCESS_TOKEN": "hunter2",
    }
    assert "hunter2" not in repr(load_settings(Settings, environ))
    assert "hunter2" not in repr(read_client_settings(environ))


@pytest.mark.parametrize(
    "addresses",
    [
        {},
        {
            "MATOOLKIT_SERVICE_BUS_NAMESPACE": "a",
            "MATOOLKIT_SERVICE_BUS_CONNECTION_STRING": "Endpoint=sb://x",
        },
    ],
)
def test_service_bus_needs_exactly_one_address(addresses: dict[str, str]) -> None:
    with pytest.raises(InvalidSettings, match="not both"):
        load_settings(Settings, {"MATOOLKIT_BUS": "servicebus", **addresses})


def test_the_systems_own_variables_are_known_as_such() -> None:
    assert is_own_variable("MATOOLKIT_DATABASE_URL")
    assert is_own_variable("service_bus_namespace")
    assert not is_own_variable("DATAVERSE_CONNECTION_STRING")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("MATOOLKIT_TICK_SECONDS", "soon", "MATOOLKIT_TICK_SECONDS should be a whole number"),
        ("MATOOLKIT_TICK_SECONDS", "0", "MATOOLKIT_TICK_SECONDS should be greater than or equal to 1"),
        ("MATOOLKIT_STEP_TIMEOUT", "0s", "MATOOLKIT_STEP_TIMEOUT is no time at all: write a duration longer than zero"),
        ("MATOOLKIT_LOG_LEVEL", "LOUD", "MATOOLKIT_LOG_LEVEL should be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_in_plain_words(name: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load_settings(Settings, {name: value})
    assert refused.value.message == problem


@pytest.mark.parametrize("name", ["MATOOLKIT_API_URL", "MATOOLKIT_AUTHORITY"])
def test_an_address_is_the_same_however_its_scheme_is_spelt(name: str) -> None:
    settings, _ = read_client_settings({name: "HTTPS://Api.example/Path/"})
    assert "https://Api.example/Path" in (settings.api_url, settings.authority)


def test_a_worker_is_named_as_runbooks_may_name_it() -> None:
    with pytest.raises(InvalidSettings, match="WORKER_ID should have letters"):
        load_settings(WorkerSettings, {"WORKER_ID": "a b"})
