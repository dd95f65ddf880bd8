"""All settings, read from the environment in one place (reference: docs/reference/settings.md).

A name that begins with `MATOOLKIT_` and is not a setting is refused, so that a misspelt one is never ignored.
"""

import os
from base64 import b64decode
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from matoolkit.client_settings import PREFIX, VARIABLES, address, duration
from matoolkit.clouds import CLOUDS, PUBLIC, Cloud, CloudName
from matoolkit.errors import InvalidSettings, did_you_mean
from matoolkit.loopback import is_loopback

# Variables that are no settings: each holds a secret for a worker without a Key Vault (rule W8).
SECRET_PREFIX = "MATOOLKIT_SECRET_"  # noqa: S105 - the beginning of a name, not a secret

_KEY_BYTES = 32

# Read by the command itself or by the tests rather than by a settings class.
_ALSO_KNOWN = (
    "MATOOLKIT_DEBUG",
    "MATOOLKIT_TEST_BROWSER",
    "MATOOLKIT_TEST_MSSQL_RESTART",
    "MATOOLKIT_TEST_MSSQL_URL",
    "MATOOLKIT_TEST_POSTGRES_URL",
)


def _duration(value: Any) -> Any:
    return duration(value) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_duration)]


def _zone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError("should be the name of a zone, such as Europe/Madrid")
    return name


def _public_address(value: str) -> str:
    """Return the address of the pages; browsers send what they keep for it to nobody who listens."""
    found = address(value)
    parts = urlsplit(found)
    if parts.path:
        raise ValueError("should be an address without a path")
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ValueError("should begin with https://, except on this machine")
    return found


def keys_in(value: SecretStr | None) -> list[bytes]:
    """Return the keys that a setting holds; both spellings of base64 are read, with or without its end."""
    texts = [one.strip().rstrip("=") for one in value.get_secret_value().split(",")] if value else []
    try:
        keys = [b64decode(one + "=" * (-len(one) % 4), altchars="-_") for one in texts]
    except ValueError:
        keys = [b""]
    if any(len(key) < _KEY_BYTES for key in keys):
        raise ValueError(
            f"should be {_KEY_BYTES} random bytes or more in base64, as `openssl rand -base64 32` makes them"
        )
    return keys


class _FromEnvironment(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    prefix: ClassVar[str] = ""

    cloud: CloudName = Field(
        PUBLIC.name, description="Microsoft's cloud in which everything is; addresses and sign-in follow from it."
    )


SettingsT = TypeVar("SettingsT", bound=_FromEnvironment)


class Settings(_FromEnvironment):
    """Settings of scheduler, orchestrator and admin API."""

    prefix = PREFIX

    database_url: SecretStr = Field(
        SecretStr("sqlite:///.matoolkit/matoolkit.db"),
        description="SQLAlchemy URL of the state database: SQLite, PostgreSQL or Azure SQL."
        " On Azure SQL an address without a password signs in with the process's Entra identity.",
    )
    sql_execution: Literal["driver", "sqlalchemy"] = Field(
        "driver",
        description="Who runs SQL statements; `sqlalchemy` is slow, and tells whether a fault is in how we run them.",
    )
    bus: Literal["sql", "servicebus"] = Field(
        "sql",
        description="Which bus carries the messages: tables in the state database, or Azure Service Bus.",
    )
    service_bus_namespace: str | None = Field(
        None, description="Fully qualified Service Bus namespace; signs in with the process's Entra identity."
    )
    service_bus_connection_string: SecretStr | None = Field(
        None, description="Service Bus connection string, instead of a namespace."
    )
    files: Path | None = Field(
        None, description="Folder with the lists that runbooks read whose source is of type `file`."
    )
    tick_seconds: int = Field(300, ge=1, le=86400, description="Seconds between two ticks of the scheduler.")
    sweep_seconds: int = Field(
        30, ge=1, le=86400, description="Seconds between two sweeps for polls, retries and lost jobs."
    )
    step_timeout: Duration = Field(
        timedelta(hours=24),
        description="A job without result for this long counts as lost, unless its step has a `timeout`.",
    )
    throttle_limit: Duration = Field(
        timedelta(hours=24),
        description="How long a throttled job is tried again without using up a retry.",
    )
    entra_tenant_id: str | None = Field(None, description="Entra tenant whose tokens the admin API accepts.")
    entra_client_id: str | None = Field(None, description="Application id of the admin API in that tenant.")
    entra_audience: str | None = Field(
        None, description="Audience a token must have, unless it is the client id; `api://` and that when not given."
    )
    label: str | None = Field(
        None, max_length=20, description="What the pages call this installation in their frame, such as PROD."
    )
    zone: Annotated[str, AfterValidator(_zone)] = Field(
        "UTC", description="Zone of the times on the pages, until a person chooses another; an IANA name."
    )
    web_address: Annotated[str, AfterValidator(_public_address)] | None = Field(
        None,
        description="Address at which browsers find the pages, such as `https://migrate.contoso.example`;"
        " with Entra there are no pages without it.",
    )
    web_key: SecretStr | None = Field(
        None,
        description="Key with which the pages sign what browsers keep: at least 32 random bytes in base64, the same"
        " for every process. While one is replaced there are two, separated by a comma; the first one signs.",
    )
    web_session: Duration = Field(
        timedelta(hours=8), le=timedelta(hours=24), description="How long people stay signed in to the pages."
    )
    web_certificate: Path | None = Field(
        None,
        description="PEM file with a certificate and its key, which prove to Entra which application the pages are.",
    )
    web_identity: str | None = Field(
        None,
        description="Client id of a managed identity that proves it instead. Without either it is the token in the file"
        " that `AZURE_FEDERATED_TOKEN_FILE` names.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Lowest level that is logged.")
    log_format: Literal["auto", "text", "json"] = Field(
        "auto",
        description="`text` for people, `json` for one JSON object a line; `auto` is text on a terminal.",
    )

    telemetry: Literal["off", "otlp", "azure"] = Field(
        "off",
        description="Where spans and metrics go: nowhere, to a collector of OpenTelemetry, or to Application Insights.",
    )

    @model_validator(mode="after")
    def _entra_is_whole(self) -> Self:
        given = [self.entra_tenant_id, self.entra_client_id]
        if given.count(None) == 1 or (self.entra_audience and None in given):
            raise ValueError("MATOOLKIT_ENTRA_TENANT_ID and MATOOLKIT_ENTRA_CLIENT_ID are needed together")
        return self

    @field_validator("web_key")
    @classmethod
    def _keys_are_long(cls, value: SecretStr | None) -> SecretStr | None:
        keys_in(value)
        return value

    @model_validator(mode="after")
    def _pages_are_whole(self) -> Self:
        if self.web_address and not (self.entra_client_id and self.web_key):
            raise ValueError(
                "MATOOLKIT_WEB_ADDRESS needs MATOOLKIT_WEB_KEY, MATOOLKIT_ENTRA_TENANT_ID and MATOOLKIT_ENTRA_CLIENT_ID"
            )
        if self.web_certificate and self.web_identity:
            raise ValueError(
                "MATOOLKIT_WEB_CERTIFICATE and MATOOLKIT_WEB_IDENTITY are two ways, of which one is enough"
            )
        return self

    @model_validator(mode="after")
    def _bus_is_reachable(self) -> Self:
        addresses = [self.service_bus_namespace, self.service_bus_connection_string]
        if self.bus == "servicebus" and addresses.count(None) != 1:
            raise ValueError(
                "MATOOLKIT_BUS is servicebus, which needs either MATOOLKIT_SERVICE_BUS_NAMESPACE"
                " or MATOOLKIT_SERVICE_BUS_CONNECTION_STRING, and not both"
            )
        return self

    @model_validator(mode="after")
    def _bus_is_in_the_cloud(self) -> Self:
        return _in_cloud(self, "MATOOLKIT_SERVICE_BUS_NAMESPACE", self.service_bus_namespace)


class WorkerSettings(_FromEnvironment):
    """Settings of a worker; these names have no prefix."""

    worker_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_-]+$",
        max_length=43,
        description="Which jobs this worker takes; `--id` overrides it.",
    )
    max_parallelism: int = Field(4, ge=1, le=256, description="Jobs that run at the same time.")
    service_bus_namespace: str | None = Field(
        None,
        description="Fully qualified Service Bus namespace; if set, the worker uses it and needs no database.",
    )
    jobs_topic_name: str = Field("worker-jobs", description="Topic from which jobs come, on Service Bus.")
    results_topic_name: str = Field("worker-results", description="Topic to which results go, on Service Bus.")
    key_vault_name: str | None = Field(None, description="Key Vault with the certificate and the secrets.")
    target_tenant_id: str | None = Field(None, description="Tenant in which the functions work.")
    target_cloud: CloudName | None = Field(
        None, description="Microsoft's cloud of that tenant, if it is not `MATOOLKIT_CLOUD`."
    )
    target_organization: str | None = Field(None, description="Its initial domain, for Exchange.")
    app_id: str | None = Field(None, description="Application with which the worker signs in there.")
    cert_name: str | None = Field(
        None, description="Name of that application's certificate in the Key Vault: PFX or PEM."
    )
    simulated_tenant_url: str | None = Field(
        None, description="Address of a simulated tenant, in which the functions then work; needs no application."
    )
    create_mail_users_with: Literal["invokecommand", "powershell"] = Field(
        "invokecommand",
        description="How cmdlets that take a password run: over HTTPS with the password as text, or in PowerShell.",
    )
    alert_sender: str | None = Field(None, description="Mailbox from which `Send-AdminAlert` mails.")
    alert_recipients: str | None = Field(None, description="Addresses to which it mails, separated by commas.")
    custom_modules_path: Path | None = Field(None, description="Folder with functions of your own.")
    max_retry_count: int = Field(5, ge=0, le=100, description="Tries after the first when a call is throttled.")
    base_retry_delay_seconds: float = Field(2, gt=0, description="Wait before the first of them.")
    max_retry_delay_seconds: float = Field(120, gt=0, description="Longest wait between two of them.")
    idle_timeout_seconds: int = Field(300, ge=0, description="Exit after this long without a job; 0 is never.")
    shutdown_grace_seconds: int = Field(30, ge=0, description="How long running jobs may take to end on SIGTERM.")
    worker_announce: bool = Field(True, description="Whether the worker announces its functions at start.")

    @model_validator(mode="after")
    def _bus_is_in_the_cloud(self) -> Self:
        return _in_cloud(self, "SERVICE_BUS_NAMESPACE", self.service_bus_namespace)


class TelemetrySettings(_FromEnvironment):
    """Where telemetry goes if it is on; these names are the standard ones, and OpenTelemetry knows more of them."""

    otel_exporter_otlp_endpoint: Annotated[str, AfterValidator(address)] = Field(
        "http://localhost:4318", description="Address of the collector, which speaks OTLP over HTTP; for `otlp`."
    )
    applicationinsights_connection_string: SecretStr | None = Field(
        None, description="Connection string of the Application Insights; for `azure`, which needs it."
    )


def _in_cloud(settings: SettingsT, variable: str, host: str | None) -> SettingsT:
    if wrong := CLOUDS[settings.cloud].elsewhere(host or ""):
        raise ValueError(f"{variable} {wrong}")
    return settings


SETTINGS_CLASSES: tuple[type[_FromEnvironment], ...] = (Settings, WorkerSettings, TelemetrySettings)


def variable_names(settings: type[_FromEnvironment]) -> dict[str, str]:
    """Environment variable of each field; the cloud has the same one for every process."""
    own = {field: f"{settings.prefix}{field}".upper() for field in settings.model_fields}
    return own | {"cloud": f"{PREFIX}CLOUD"}


def cloud_of(environ: Mapping[str, str]) -> Cloud:
    """Return the cloud that an environment names."""
    return CLOUDS[load_settings(_FromEnvironment, environ).cloud]


def is_own_variable(name: str) -> bool:
    """Tell whether an environment variable configures the system itself (rule R4 refuses it as a source)."""
    own = {**variable_names(WorkerSettings), **variable_names(TelemetrySettings)}
    return name.upper().startswith(PREFIX) or name.upper() in own.values()


def secret_variable(name: str) -> str:
    """Return the environment variable of a secret: letters become capitals, and `-` and `.` become `_`."""
    return SECRET_PREFIX + name.replace("-", "_").replace(".", "_").upper()


def load_settings(settings: type[SettingsT], environ: Mapping[str, str] = os.environ) -> SettingsT:
    """Read settings from the environment; an empty variable counts as not set.

    Everything that is wrong is said in one error, which never repeats a value: it may be a secret.
    """
    problems, hint = unknown_names(environ)
    variables = variable_names(settings)
    given = {field: environ[name] for field, name in variables.items() if environ.get(name)}
    try:
        loaded = settings.model_validate(given)
    except ValidationError as invalid:
        problems += [_problem(error, variables) for error in invalid.errors(include_url=False)]
        raise InvalidSettings(problems, hint=hint) from None
    if problems:
        raise InvalidSettings(problems, hint=hint)
    return loaded


def bus_variables_of_worker(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a worker's process with its own `SERVICE_BUS_NAMESPACE` as the bus, if that is set."""
    namespace = environ.get("SERVICE_BUS_NAMESPACE")
    if not namespace:
        return dict(environ)
    bus = {f"{PREFIX}BUS": "servicebus", f"{PREFIX}SERVICE_BUS_NAMESPACE": namespace}
    return {**environ, **bus, f"{PREFIX}SERVICE_BUS_CONNECTION_STRING": ""}


def unknown_names(environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Return what is wrong with names that begin like settings and are none, and a hint at those that were meant."""
    known = {name for cls in SETTINGS_CLASSES for name in variable_names(cls).values()}
    known |= {*VARIABLES.values(), *_ALSO_KNOWN}
    unknown = sorted(name for name in environ if _is_setting(name) and name not in known)
    hints = {name: did_you_mean(name, known) for name in unknown}
    problems = [f"{name} is not a setting" for name in unknown]
    return problems, "; ".join(f"{name}: {hint}" for name, hint in hints.items() if hint) or None


def _is_setting(name: str) -> bool:
    return name.startswith(PREFIX) and not name.startswith(SECRET_PREFIX)


_PROBLEMS = {
    "int_parsing": "should be a whole number",
    "float_parsing": "should be a number",
    "bool_parsing": "should be true or false",
    "string_pattern_mismatch": "should have letters, digits, - and _ only",
}


def _problem(error: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    said = str(error["msg"]).removeprefix("Value error, ").replace("Input should", "should")
    message = _PROBLEMS.get(error["type"], said)
    return f"{variables[error['loc'][0]]} {message}" if error["loc"] else message
