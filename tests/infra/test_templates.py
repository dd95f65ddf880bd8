"""The templates in `infra/` hold together, and say what the code and the tables say."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from matoolkit.bus import topology
from matoolkit.bus.servicebus.wanted import SUBSCRIPTION, TOPIC, Wanted
from matoolkit.clouds import CLOUDS
from matoolkit.settings import Settings, WorkerSettings, load_settings, variable_names
from matoolkit.store.dialect.mssql_types import EXACT_COLLATION
from matoolkit.telemetry.metering import MEASURES
from tests.infra.bicep import Declared, Template, literal, properties, template, value
from tests.infra.checking import problems

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
SHARED = INFRA / "shared" / "deploy.bicep"
SCHEDULER = INFRA / "automation" / "scheduler-orchestrator" / "deploy.bicep"
ADMIN_API = INFRA / "automation" / "admin-api" / "deploy.bicep"
WORKER = INFRA / "automation" / "cloud-worker" / "deploy.bicep"
STAGES = (SHARED, SCHEDULER, ADMIN_API, WORKER)
MODULES = INFRA / "modules"
TEMPLATES = sorted(INFRA.rglob("*.bicep"))


def name(path: Path) -> str:
    return str(path.relative_to(INFRA))


# ---------------------------------------------------------------- what a compiler would say


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_a_template_has_nothing_that_bicep_or_azure_does_not_know(path: Path) -> None:
    assert problems(template(path)) == []


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("tier: 'Premium'", "tear: 'Premium'", "unknown"),
        ("disableLocalAuth: true", "disableLocalAuth: 'yes'", "bool is expected"),
        ("publicNetworkAccess: isPremium ? 'Disabled' : 'Enabled'", "provisioningState: 'Done'", "read-only"),
        ("family: 'A'", "", "needs family"),
        ("defaultAction: 'Deny'", "defaultAction: 'Refuse'", "is none of"),
        ("targetId: vault.id", "targetId: safe.id", "safe is not declared"),
        ("groupId: 'vault'", "group: 'vault'", "has no parameter group"),
        ("groupId: 'vault'", "", "needs groupId"),
        ("unique = uniqueString(", "unique = uniqueText(", "no function uniqueText"),
        ("capacity: serviceBusCapacity", "capacity: 1", "serviceBusCapacity is not used"),
        ("sku: { name: 'Basic' }", "sku: { name: 'Basic' ", "syntax"),
        ("vaults@2024-11-01' = {", "vaults@2099-01-01' = {", "no description"),
    ],
)
def test_a_mistake_is_found(good: str, bad: str, said: str) -> None:
    text = SHARED.read_text(encoding="utf-8")
    assert good in text
    assert said in "\n".join(problems(Template(SHARED, text.replace(good, bad).encode())))


@pytest.mark.parametrize("path", STAGES, ids=name)
def test_a_file_of_parameters_gives_what_its_template_takes(path: Path) -> None:
    given = json.loads((path.parent / "deploy.parameters.json").read_text(encoding="utf-8"))["parameters"]
    assert set(given) <= set(template(path).parameters)


def test_no_template_takes_or_holds_a_password() -> None:
    for path in TEMPLATES:
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"listKeys|listConnectionStrings|administratorLogin|(?i:\bparam \w*password)", text), path


def test_the_database_has_the_collation_that_db_check_wants() -> None:
    (database,) = of_kind(SCHEDULER, "Microsoft.Sql/servers/databases")
    assert database.value["properties"]["collation"] == EXACT_COLLATION


# ---------------------------------------------------------------- messages (rule M8)


def iso(duration: timedelta) -> str:
    days, minutes = duration.days, duration.seconds // 60
    return f"P{days}D" if days else f"PT{minutes}M"


def of_kind(path: Path, kind: str) -> list[Declared]:
    return [one for one in template(path).resources if one.kind.partition("@")[0] == kind and not one.is_existing]


_TOPICS = "Microsoft.ServiceBus/namespaces/topics"


def written(wanted: Iterable[Wanted]) -> dict[str, Any]:
    """Return what a template has to say for Service Bus to be as the code wants it; the rest is so by itself."""
    given = [one for one in wanted if one.attribute not in BY_ITSELF]
    values = {one.attribute: iso(one.value) if isinstance(one.value, timedelta) else one.value for one in given}
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), name): value for name, value in values.items()}


BY_ITSELF = {"status", "requires_session", "forward_to", "auto_delete_on_idle"}


def test_m8_the_topics_are_those_of_the_code() -> None:
    assert value(template(SHARED).variables["topicNames"]) == list(topology.TOPICS)
    (topics,) = of_kind(SHARED, _TOPICS)
    assert topics.value["properties"] == written(TOPIC)


def test_m8_the_subscriptions_are_those_of_the_code() -> None:
    found = {}
    for path in (SCHEDULER, MODULES / "worker-subscription.bicep"):
        topics = {one.symbol: one.value["name"] for one in template(path).resources if f"{_TOPICS}@" in one.kind}
        for one in of_kind(path, f"{_TOPICS}/subscriptions"):
            found[topics[one.value["parent"].partition("::")[2]], str(one.value["name"]).strip("'")] = one
    assert set(found) == {(one.topic, one.name) for one in topology.subscriptions(["${workerId}"])}
    for one in found.values():
        assert one.value["properties"] == written(SUBSCRIPTION)


def condition(path: Path) -> str:
    """Return the condition of the one rule in a template, as it is written there."""
    (rule,) = of_kind(path, f"{_TOPICS}/subscriptions/rules")
    assert rule.value["name"] == "$Default"
    return str(rule.value["properties"]["sqlFilter"]["sqlExpression"]).replace("\\'", "'")


def test_m8_a_worker_gets_its_own_jobs_only() -> None:
    wanted = topology.condition_of(topology.jobs_of_worker("${workerId}"), [])
    assert condition(MODULES / "worker-subscription.bicep") == f"'{wanted}'"


def test_m8_jobs_for_nobody_are_kept() -> None:
    without, named = (topology.condition_of(topology.UNCLAIMED_JOBS, ids) for ids in ([], ["worker-01"]))
    named = named.replace("'worker-01'", "${join(quotedWorkers, ', ')}")
    assert condition(SCHEDULER) == f"empty(workerIds) ? '{without}' : '{named}'"


# ---------------------------------------------------------------- network


def test_there_are_five_subnets_that_do_not_overlap() -> None:
    text = SHARED.read_text(encoding="utf-8")
    assert dict(re.findall(r"name: '(snet-[\w-]+)'.*?(10\.[\d.]+/\d+)", text, re.DOTALL)) == {
        "snet-scheduler": "10.0.1.0/24",
        "snet-orchestrator": "10.0.2.0/24",
        "snet-admin-api": "10.0.3.0/24",
        "snet-cloud-worker": "10.0.4.0/23",
        "snet-private-endpoints": "10.0.10.0/24",
    }
    assert text.count("Microsoft.App/environments'") == 2  # the three apps by a loop, and the worker


def endpoints(path: Path) -> Counter[str]:
    """Count the private endpoints of a deployment by the service that they lead to."""
    found: Counter[str] = Counter()
    here = template(path)
    for module in here.modules:
        params = {key: value(node) for key, node in properties(properties(module.body)["params"]).items()}
        if module.kind.endswith("private-endpoint.bicep"):
            group = str(params["groupId"])
            groups = (
                [one["group"] for one in value(here.variables["services"])] if group == "service.group" else [group]
            )
            found.update(groups)
        else:
            found.update(endpoints(here.path.parent / module.kind))
    return found


def test_there_are_twelve_endpoints_and_one_for_each_site() -> None:
    found = sum((endpoints(path) for path in STAGES), Counter[str]())
    sites = found.pop("sites")
    assert found == {"vault": 1, "namespace": 1, "sqlServer": 1, "blob": 3, "queue": 3, "table": 3}
    assert found.total() == 12
    assert sites == 3


@pytest.mark.parametrize("cloud", ["AzureCloud", "AzureUSGovernment", "AzureChinaCloud"])
def test_there_are_six_zones_and_one_for_the_sites_in_every_cloud(cloud: str) -> None:
    """environment() is as Bicep's documentation says; the rest is in the template."""
    suffixes, toolkit = {
        "AzureCloud": ((".database.windows.net", "core.windows.net"), CLOUDS["public"]),
        "AzureUSGovernment": ((".database.usgovcloudapi.net", "core.usgovcloudapi.net"), CLOUDS["usgov"]),
        "AzureChinaCloud": ((".database.chinacloudapi.cn", "core.chinacloudapi.cn"), CLOUDS["china"]),
    }[cloud]
    here = template(SHARED)
    names = value(here.variables["namesOfClouds"])[cloud]
    known = {f"names.{name}": text for name, text in names.items()}
    known |= zip(("environment().suffixes.sqlServerHostname", "environment().suffixes.storage"), suffixes, strict=True)
    text = here.variables["zoneNames"].text.replace("[zoneOfSites]", f"[{here.variables['zoneOfSites'].text}]")
    zones = [known_in(one, known) for one in re.findall(r"'(privatelink[^']*)'", text)]
    sql, storage = suffixes
    assert zones == [
        f"privatelink{sql}",
        f"privatelink.{names['vault']}",
        f"privatelink.{toolkit.service_bus}",
        *(f"privatelink.{kind}.{storage}" for kind in ("blob", "queue", "table")),
        f"privatelink.{names['sites']}",
    ]
    assert sql == f".{toolkit.sql}"
    assert names["vault"] == toolkit.key_vault.replace("vault.", "vaultcore.")


def known_in(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{(.+?)\}", lambda found: known[found[1]], text)


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_no_template_names_an_address_of_one_cloud_alone(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path == SHARED:
        table = template(SHARED).variables["namesOfClouds"].text
        assert table in text
        text = text.replace(table, "")
    assert not re.findall(r"[\w.-]+\.(?:windows\.net|azure\.(?:net|us|cn)|usgovcloudapi\.net|chinacloudapi\.cn)", text)


# ---------------------------------------------------------------- roles


def table_of_roles() -> dict[str, set[tuple[str, str]]]:
    """Read the table of the guide: who has which role on what, in the words of the templates."""
    page = (ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text(encoding="utf-8")
    table = page.partition("| identity | role | on |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([\w ]+) \| ([\w ]+) \| (\w+)[^|]* \|$", table, re.MULTILINE)
    found: dict[str, set[tuple[str, str]]] = {}
    for who, role, scope in rows:
        found.setdefault("adminApi" if who == "admin API" else who, set()).add((ROLES[role], scope))
    return found


ROLES = {
    "AcrPull": "acrPull",
    "AcrPush": "acrPush",
    "Azure Service Bus Data Owner": "serviceBusDataOwner",
    "Azure Service Bus Data Receiver": "serviceBusDataReceiver",
    "Azure Service Bus Data Sender": "serviceBusDataSender",
    "Container Apps Contributor": "containerAppsContributor",
    "Key Vault Secrets User": "keyVaultSecretsUser",
    "Storage Blob Data Owner": "storageBlobDataOwner",
    "Storage Table Data Contributor": "storageTableDataContributor",
    "Website Contributor": "websiteContributor",
}


def assigned(path: Path, app: str = "") -> set[tuple[str, str, str]]:
    """Return who gets which role on what from a deployment, its modules included."""
    found = set()
    here = template(path)
    for one in of_kind(path, "Microsoft.Authorization/roleAssignments"):
        given = one.value["properties"]
        (role,) = re.findall(r"roles\.(\w+)", given["roleDefinitionId"])
        assert f"roles.{role})" in one.value["name"], "the name of an assignment is made of what it assigns"
        who = re.sub(r"PrincipalId$|\.(outputs|properties|identity)\.principalId$", "", given["principalId"])
        found.add((app if who == "app" else who, role, str(one.value["scope"])))
    for module in here.modules:
        found |= assigned(here.path.parent / module.kind, module.symbol)
    return found


def test_every_identity_has_the_roles_of_the_table_and_no_other() -> None:
    found: dict[str, set[tuple[str, str]]] = {}
    for path in STAGES:
        for who, role, scope in assigned(path):
            found.setdefault(who, set()).add((role, scope))
    assert found == table_of_roles()
    assert sum(map(len, found.values())) == 21


def test_the_roles_have_the_ids_that_azure_knows_them_by() -> None:
    assert value(template(MODULES / "shared.bicep").variables["roles"]) == {
        "acrPull": "7f951dda-4ed3-4680-a7ca-43fe172d538d",
        "acrPush": "8311e382-0749-4cb8-b61a-304f252e45ec",
        "containerAppsContributor": "358470bc-b998-42bd-ab17-a7e34c199c0f",
        "keyVaultSecretsUser": "4633458b-17de-408a-b874-0445c86b69e6",
        "serviceBusDataOwner": "090c5cfd-751d-490a-894a-3ce6f1109419",
        "serviceBusDataReceiver": "4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0",
        "serviceBusDataSender": "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39",
        "storageBlobDataOwner": "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
        "storageTableDataContributor": "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3",
        "websiteContributor": "de139f84-1756-47ae-9be6-808fbbe84772",
    }


def test_there_is_no_key_to_anything() -> None:
    (namespace,) = of_kind(SHARED, "Microsoft.ServiceBus/namespaces")
    (storage,) = of_kind(MODULES / "function-app.bicep", "Microsoft.Storage/storageAccounts")
    (server,) = of_kind(SCHEDULER, "Microsoft.Sql/servers")
    (registry,) = of_kind(SHARED, "Microsoft.ContainerRegistry/registries")
    assert namespace.value["properties"]["disableLocalAuth"] is True
    assert storage.value["properties"]["allowSharedKeyAccess"] is False
    assert server.value["properties"]["administrators"]["azureADOnlyAuthentication"] is True
    assert registry.value["properties"]["adminUserEnabled"] is False


def test_no_container_can_be_the_scaler() -> None:
    (app,) = of_kind(WORKER, "Microsoft.App/containerApps")
    use = {one["identity"]: one["lifecycle"] for one in app.value["properties"]["configuration"]["identitySettings"]}
    assert use == {"worker.id": "Main", "scaler.id": "None"}
    (rule,) = app.value["properties"]["template"]["scale"]["rules"]
    assert rule["custom"]["identity"] == "scaler.id"
    assert "auth" not in rule["custom"]


# ---------------------------------------------------------------- settings

# Read by the host, by azure-identity or by the telemetry, and not by us.
OF_OTHERS = {
    "APPLICATIONINSIGHTS_CONNECTION_STRING",
    "AZURE_CLIENT_ID",
    "AZURE_TOKEN_CREDENTIALS",
    "AzureWebJobsDisableHomepage",
    "AzureWebJobsStorage__accountName",
    "AzureWebJobsStorage__credential",
    "ServiceBus__credential",
    "ServiceBus__fullyQualifiedNamespace",
}
SERVICE = set(variable_names(Settings).values())
OF_WORKER = set(variable_names(WorkerSettings).values())


def settings_of_apps() -> dict[str, dict[str, Any]]:
    found = {}
    for path in (SCHEDULER, ADMIN_API):
        for module in template(path).modules:
            if module.kind.endswith("function-app.bicep"):
                text = properties(properties(module.body)["params"])["settings"].text
                found[module.symbol] = dict(re.findall(r"^ +(\w+): (.+)$", text, re.MULTILINE))
    return found


def environment_of_worker() -> dict[str, str]:
    text = WORKER.read_text(encoding="utf-8")
    return dict(re.findall(r"\{ name: '(\w+)', value: (.+) \}", text))


@pytest.mark.parametrize("app", ["scheduler", "orchestrator", "adminApi"])
def test_an_app_is_given_settings_that_the_code_reads(app: str) -> None:
    given = settings_of_apps()[app]
    assert {"MATOOLKIT_DATABASE_URL", "MATOOLKIT_BUS", "MATOOLKIT_SERVICE_BUS_NAMESPACE"} <= set(given)
    assert set(given) - SERVICE <= OF_OTHERS


@pytest.mark.parametrize("path", [MODULES / "function-app.bicep", WORKER], ids=lambda path: path.parent.name)
def test_every_part_signs_in_with_its_managed_identity_and_no_other(path: Path) -> None:
    said = re.findall(r"AZURE_TOKEN_CREDENTIALS\W+(?:value: ')?(\w+)'", path.read_text(encoding="utf-8"))
    assert said == ["ManagedIdentityCredential"]


def test_only_the_admin_api_is_told_who_may_sign_in() -> None:
    entra = {name for name in SERVICE if "ENTRA" in name}
    assert {app for app, given in settings_of_apps().items() if entra <= set(given)} == {"adminApi"}


def test_the_pages_are_given_settings_that_belong_together() -> None:
    """Without a client secret: the identity of the pages is one of the app, and its name is handed to the app."""
    text = ADMIN_API.read_text(encoding="utf-8")
    given = set(re.findall(r"MATOOLKIT_WEB_\w+", text))
    assert given == {"MATOOLKIT_WEB_ADDRESS", "MATOOLKIT_WEB_KEY", "MATOOLKIT_WEB_IDENTITY"}
    assert given <= SERVICE
    (identity,) = of_kind(ADMIN_API, "Microsoft.ManagedIdentity/userAssignedIdentities")
    assert f"'${{{identity.symbol}.id}}': {{}}" in text
    assert f"MATOOLKIT_WEB_IDENTITY: {identity.symbol}.properties.clientId" in text


def test_a_worker_is_given_settings_that_the_code_reads_and_no_database() -> None:
    given = set(environment_of_worker())
    assert {"WORKER_ID", "SERVICE_BUS_NAMESPACE", "KEY_VAULT_NAME", "CERT_NAME"} <= given
    assert given - SERVICE - OF_WORKER <= OF_OTHERS
    assert "MATOOLKIT_DATABASE_URL" not in given


def test_the_settings_that_are_written_out_are_accepted() -> None:
    for given in settings_of_apps().values():
        plain = {key: text.strip("'") for key, text in given.items() if key in SERVICE and text.startswith("'")}
        load_settings(
            Settings, {**plain, "MATOOLKIT_SERVICE_BUS_NAMESPACE": "x.servicebus.windows.net"} | _entra(given)
        )
    written = {key: text.strip("'") for key, text in environment_of_worker().items() if re.fullmatch(r"'[^'$]*'", text)}
    load_settings(WorkerSettings, written)


def _entra(given: dict[str, Any]) -> dict[str, str]:
    return {key: "11111111-2222-3333-4444-555555555555" for key in given if "ENTRA" in key}


def test_w1_a_worker_has_time_to_end_its_jobs() -> None:
    (app,) = of_kind(WORKER, "Microsoft.App/containerApps")
    whole = app.value["properties"]["template"]["terminationGracePeriodSeconds"]
    assert whole == "graceSeconds"
    assert environment_of_worker()["SHUTDOWN_GRACE_SECONDS"] == "string(graceSeconds / 2)"


# ---------------------------------------------------------------- alerts


def test_five_things_that_matter_have_an_alert() -> None:
    kinds = ("Microsoft.Insights/metricAlerts", "Microsoft.Insights/scheduledQueryRules")
    names = [str(one.value["name"]) for path in STAGES for kind in kinds for one in of_kind(path, kind)]
    meant = ("dead-letters", "dead-letters-kept", "silent-workers", "failing-ticks", "due-lag", "failing-jobs")
    assert sorted(text.strip("'").removeprefix("${name}-").removeprefix("${workerId}-") for text in names) == sorted(
        meant
    )


@pytest.mark.parametrize(
    ("path", "event", "module"),
    [
        (SCHEDULER, " became dead letters", "bus/draining.py"),
        (WORKER, " failed: ", "worker/settlement.py"),
    ],
)
def test_an_alert_looks_for_a_line_that_the_code_writes(path: Path, event: str, module: str) -> None:
    queries = " ".join(node.text for node in template(path).of_type("string") if literal(node) != event)
    assert f'"{event}' in queries
    assert event in (ROOT / "src" / "matoolkit" / module).read_text(encoding="utf-8")


def test_an_alert_looks_for_a_metric_that_the_code_sends() -> None:
    queries = [
        node.text for path in STAGES for node in template(path).of_type("string") if "customMetrics" in node.text
    ]
    named = {name for query in queries for name in re.findall(r'name == "([^"]+)"', query)}
    assert "matoolkit.phase.lag" in named
    assert named <= {measure.name for measure in MEASURES}


def test_every_part_sends_its_telemetry_to_its_own_application_insights() -> None:
    settings = (MODULES / "function-app.bicep").read_text(encoding="utf-8")
    assert "MATOOLKIT_TELEMETRY: 'azure'" in settings
    assert "APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString" in settings
    worker = environment_of_worker()
    assert worker["MATOOLKIT_TELEMETRY"] == "'azure'"
    assert worker["APPLICATIONINSIGHTS_CONNECTION_STRING"] == "insights.properties.ConnectionString"
