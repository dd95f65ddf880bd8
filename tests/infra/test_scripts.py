"""The scripts that deploy, with programs in the place of `az`, `gh` and `matoolkit` that note how they are called."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.infra.bicep import template

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
SHARED = {"namePrefix": "matoolkit", "subnets": {"scheduler": "/subscriptions/1/a b"}}
VARIABLES = {
    "RESOURCE_GROUP": "rg-matoolkit-dev",
    "ENVIRONMENT_NAME": "dev",
    "SQL_ENTRA_ADMIN_OBJECT_ID": "11111111-2222-3333-4444-555555555555",
    "SQL_ENTRA_ADMIN_LOGIN": "SQL admins",
    "ENTRA_ID_TENANT_ID": "contoso",
    "ENTRA_ID_CLIENT_ID": "api",
    "ENTRA_ID_AUDIENCE": "api://api",
    "WORKER_IMAGE": "contoso.azurecr.io/matoolkit-worker@sha256:1",
    "TARGET_TENANT_ID": "fabrikam",
    "TARGET_ORGANIZATION": "fabrikam.onmicrosoft.com",
    "TARGET_APP_ID": "worker",
    "TARGET_CERT_NAME": "worker",
}


@dataclass
class Machine:
    """A machine on which some programs only note how they are called, and answer what they are told to."""

    folder: Path

    def program(self, name: str, answers: str = "") -> None:
        """Put a program on the path; `answers` is shell code that sees its arguments as $*."""
        path = self.folder / name
        path.write_text(
            f'#!/usr/bin/env bash\nprintf "%s\\n" "{name} ${{*@Q}}" >>"$NOTES"\n{answers}\n', encoding="utf-8"
        )
        path.chmod(0o755)

    def run(self, script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script with these programs and variables, and no others of the environment."""
        path = f"{self.folder}:{os.environ['PATH']}"
        environ = {"PATH": path, "NOTES": str(self.folder / "notes"), "HOME": str(self.folder), **variables}
        command = ["bash", str(script), *arguments]
        return subprocess.run(command, env=environ, capture_output=True, text=True, cwd=self.folder, timeout=30)

    @property
    def calls(self) -> list[list[str]]:
        """Return the calls of all programs in their order."""
        notes = self.folder / "notes"
        return [shlex.split(line) for line in notes.read_text(encoding="utf-8").splitlines()] if notes.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# ---------------------------------------------------------------- deploy.sh

OUTPUTS = f"""case "$*" in
  *show*shared-infra*) echo '{json.dumps(SHARED)}' ;;
  *show*sqlServerFqdn*) echo '"sql.contoso.example"' ;;
  *show*sqlDatabaseName*) echo '"matoolkit"' ;;
esac"""


def deployments(machine: Machine) -> dict[str, dict[str, str]]:
    """Return the parameters of each deployment by its name, in the order in which they were made."""
    found = {}
    for call in machine.calls:
        if "show" not in call:
            given = (call[at + 1] for at, word in enumerate(call) if word == "--parameters")
            pairs = (text.partition("=") for text in given if not text.startswith("@"))
            found[call[call.index("--name") + 1]] = {name: value for name, _, value in pairs}
    return found


def test_everything_is_deployed_in_its_order(machine: Machine) -> None:
    machine.program("az", OUTPUTS)
    done = machine.run(INFRA / "deploy.sh", "create", **VARIABLES)
    assert done.returncode == 0, done.stderr
    assert list(deployments(machine)) == ["shared-infra", "scheduler-orchestrator", "admin-api", "cloud-worker"]
    assert {call[3] for call in machine.calls} == {"create", "show"}


def test_the_second_stage_is_given_what_the_first_made(machine: Machine) -> None:
    machine.program("az", OUTPUTS)
    machine.run(INFRA / "deploy.sh", "create", **VARIABLES)
    made = deployments(machine)
    for name in ("scheduler-orchestrator", "admin-api", "cloud-worker"):
        assert json.loads(made[name]["shared"]) == SHARED
    assert made["admin-api"]["sqlServerFqdn"] == "sql.contoso.example"
    assert json.loads(made["admin-api"]["sourceSettings"]) == {}


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("shared-infra", "shared"),
        ("scheduler-orchestrator", "automation/scheduler-orchestrator"),
        ("admin-api", "automation/admin-api"),
        ("cloud-worker", "automation/cloud-worker"),
    ],
)
def test_a_template_is_given_all_that_it_needs_and_nothing_that_it_does_not_take(
    machine: Machine, name: str, folder: str
) -> None:
    machine.program("az", OUTPUTS)
    machine.run(INFRA / "deploy.sh", "create", **VARIABLES)
    in_file = json.loads((INFRA / folder / "deploy.parameters.json").read_text(encoding="utf-8"))["parameters"]
    given = set(deployments(machine)[name]) | set(in_file)
    takes = template(INFRA / folder / "deploy.bicep").parameters
    assert {parameter for parameter, must in takes.items() if must} <= given <= set(takes)


def test_the_first_what_if_shows_the_first_stage(machine: Machine) -> None:
    machine.program("az")
    done = machine.run(INFRA / "deploy.sh", "what-if", **VARIABLES)
    assert done.returncode == 0, done.stderr
    assert list(deployments(machine)) == ["shared-infra"]
    assert "cloud-worker can be shown only after the first shared-infra" in done.stderr


def test_nothing_of_the_second_stage_is_made_before_the_first(machine: Machine) -> None:
    machine.program("az")
    done = machine.run(INFRA / "deploy.sh", "create", "admin-api", **VARIABLES)
    assert (done.returncode, deployments(machine)) == (1, {})


@pytest.mark.parametrize(("action", "code"), [("create", 1), ("what-if", 0)])
def test_an_admin_api_is_never_deployed_without_its_database(machine: Machine, action: str, code: int) -> None:
    machine.program("az", OUTPUTS.replace("sqlServerFqdn", "nothing"))
    done = machine.run(INFRA / "deploy.sh", action, "admin-api", **VARIABLES)
    assert (done.returncode, deployments(machine)) == (code, {})
    assert "scheduler-orchestrator" in done.stderr


def test_what_is_not_set_is_named_before_anything_is_deployed(machine: Machine) -> None:
    machine.program("az", OUTPUTS)
    given = {name: value for name, value in VARIABLES.items() if not name.startswith("SQL")}
    done = machine.run(INFRA / "deploy.sh", "create", "scheduler-orchestrator", **given)
    assert done.returncode == 2
    assert "not set: SQL_ENTRA_ADMIN_OBJECT_ID SQL_ENTRA_ADMIN_LOGIN" in done.stderr
    assert machine.calls == []


def test_an_environment_may_have_parameters_of_its_own(machine: Machine) -> None:
    """The script works where it lies, so a copy of the templates is deployed."""
    machine.program("az", OUTPUTS)
    shutil.copytree(INFRA, machine.folder / "infra")
    (machine.folder / "infra" / "shared" / "deploy.parameters.prod.json").write_text("{}", encoding="utf-8")
    for name in ("dev", "prod"):
        machine.run(
            machine.folder / "infra" / "deploy.sh", "create", "shared", **VARIABLES | {"ENVIRONMENT_NAME": name}
        )
    files = [[word for word in call if word.startswith("@")] for call in machine.calls]
    usual = "@shared/deploy.parameters.json"
    assert files == [[usual], [usual, "@shared/deploy.parameters.prod.json"]]


@pytest.mark.parametrize(("action", "is_asked"), [("what-if", False), ("create", True)])
def test_what_would_change_is_shown_to_who_may_change_nothing(machine: Machine, action: str, is_asked: bool) -> None:
    machine.program("az", OUTPUTS)
    machine.run(INFRA / "deploy.sh", action, "shared", **VARIABLES)
    (call,) = machine.calls
    assert ("ProviderNoRbac" not in call) is is_asked


def test_a_worker_that_was_given_another_image_keeps_it(machine: Machine) -> None:
    """WORKER_IMAGE is that of its first deployment, and may be a year old."""
    newer = "*show*containerAppName*) echo '\"ca-dev-worker-01\"' ;;\n  *containerapp*ca-dev-worker-01*) echo newer ;;"
    machine.program("az", OUTPUTS.replace("esac", f"  {newer}\nesac"))
    machine.run(INFRA / "deploy.sh", "create", "cloud-worker", **VARIABLES)
    assert deployments(machine)["cloud-worker"]["image"] == "newer"


@pytest.mark.parametrize("arguments", [[], ["delete"], ["create", "everything"]])
def test_another_word_is_answered_with_the_usage(machine: Machine, arguments: list[str]) -> None:
    machine.program("az", OUTPUTS)
    done = machine.run(INFRA / "deploy.sh", *arguments, **VARIABLES)
    assert (done.returncode, machine.calls) == (2, [])
    assert "infra/deploy.sh create|what-if [STAGE...]" in done.stderr


# ---------------------------------------------------------------- update-worker.sh

APP = {"RESOURCE_GROUP": "rg", "CONTAINER_APP": "ca-dev-worker-01", "IMAGE": "new", "TRIES": "2", "PAUSE": "0"}


def app_that_is(state: str, fewest: int) -> str:
    return f"""case "$*" in
  *image*query*|*query*image*) echo old ;;
  *minReplicas*) echo {fewest} ;;
  *latestRevisionName*) echo revision-2 ;;
  *revision\\ show*) echo '{state}' ;;
esac"""


def updates(machine: Machine) -> list[list[str]]:
    return [call[call.index("none") + 1 :] for call in machine.calls if call[2] == "update"]


def test_a_worker_that_lives_keeps_its_image_and_sleeps_again(machine: Machine) -> None:
    machine.program("az", app_that_is("Healthy Running", 0))
    done = machine.run(INFRA / "update-worker.sh", **APP)
    assert done.returncode == 0, done.stderr
    assert updates(machine) == [["--image", "new", "--min-replicas", "1"], ["--min-replicas", "0"]]


def test_a_worker_that_never_sleeps_goes_on_so(machine: Machine) -> None:
    machine.program("az", app_that_is("Healthy RunningAtMaxScale", 2))
    assert machine.run(INFRA / "update-worker.sh", **APP).returncode == 0
    assert updates(machine) == [["--image", "new", "--min-replicas", "2"]]


@pytest.mark.parametrize("state", ["Unhealthy Failed", "Unhealthy Activating"])
def test_a_worker_that_does_not_live_gets_its_old_image_back(machine: Machine, state: str) -> None:
    machine.program("az", app_that_is(state, 0))
    done = machine.run(INFRA / "update-worker.sh", **APP)
    assert done.returncode == 1
    assert updates(machine)[-1] == ["--image", "old", "--min-replicas", "0"]
    assert "new does not run; ca-dev-worker-01 has old again" in done.stderr


# ---------------------------------------------------------------- update-functions.sh

FUNCTIONS = {
    "RESOURCE_GROUP": "rg",
    "SCHEDULER_APP": "scheduler",
    "ORCHESTRATOR_APP": "orchestrator",
    "ADMIN_API_APP": "admin-api",
    "PACKAGES": "new",
    "BEFORE": "old",
    "TRIES": "2",
    "PAUSE": "0",
}
FOUND = """case "$*" in
  *function\\ list*scheduler*) printf 'scheduler/tick\\nscheduler/sweep\\n' ;;
  *function\\ list*orchestrator*) printf 'orchestrator/events\\norchestrator/results\\norchestrator/sweep\\n' ;;
  *function\\ list*admin-api*) printf 'admin-api/api\\nadmin-api/sweep\\n' ;;
  *defaultHostName*) echo api.example ;;
esac"""
SWITCHES = {"scheduler": 2, "orchestrator": 3, "admin-api": 1}


def packages(machine: Machine) -> list[str]:
    """Return the packages that were deployed, in their order."""
    return [call[call.index("--src") + 1] for call in machine.calls if "config-zip" in call]


def switched(machine: Machine) -> list[str]:
    """Return how functions were switched, each as a setting."""
    return [word for call in machine.calls if "appsettings" in call for word in call if "Disabled" in word]


@pytest.fixture
def updating(machine: Machine) -> Callable[..., subprocess.CompletedProcess[str]]:
    (machine.folder / "old").mkdir()
    (machine.folder / "old" / "scheduler.zip").touch()
    machine.program("curl")

    def update(what: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return machine.run(INFRA / "update-functions.sh", what, **FUNCTIONS | variables)

    return update


Updating = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(("what", "off"), [("pause", "true"), ("resume", "false")])
def test_all_functions_but_the_api_are_switched_off_and_on(
    machine: Machine, updating: Updating, what: str, off: str
) -> None:
    machine.program("az")
    done = updating(what)
    assert done.returncode == 0, done.stderr
    assert len(switched(machine)) == sum(SWITCHES.values())
    assert {word.rpartition("=")[2] for word in switched(machine)} == {off}
    assert not any(".api." in word for word in switched(machine))


def test_a_version_that_lives_is_switched_on(machine: Machine, updating: Updating) -> None:
    machine.program("az", FOUND)
    done = updating("deploy")
    assert done.returncode == 0, done.stderr
    assert packages(machine) == ["new/admin-api.zip", "new/orchestrator.zip", "new/scheduler.zip"]
    assert ["curl", "https://api.example/readyz"] in [[call[0], call[-1]] for call in machine.calls]
    assert len(switched(machine)) == sum(SWITCHES.values())


@pytest.mark.parametrize(
    ("az", "curl"),
    [
        (FOUND, "exit 22"),
        (FOUND.replace("scheduler/tick", "scheduler/tock"), ""),
        (f"[[ $* != *new/orchestrator.zip* ]] || exit 1\n{FOUND}", ""),
    ],
    ids=["its API does not answer", "the host lacks a function", "it cannot be deployed"],
)
def test_a_version_that_does_not_live_is_replaced_by_the_one_before(
    machine: Machine, updating: Updating, az: str, curl: str
) -> None:
    machine.program("az", az)
    machine.program("curl", curl)
    done = updating("deploy")
    assert done.returncode == 1
    assert packages(machine)[-3:] == ["old/admin-api.zip", "old/orchestrator.zip", "old/scheduler.zip"]
    assert {word.rpartition("=")[2] for word in switched(machine)} == {"false"}
    assert "the function apps have the one before" in done.stderr


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"TABLES_CHANGED": "true"}, "the old one refuses the tables"),
        ({"BEFORE": "none"}, "there is no version before"),
    ],
)
def test_where_there_is_no_way_back_functions_stay_off(
    machine: Machine, updating: Updating, variables: dict[str, str], why: str
) -> None:
    machine.program("az", FOUND)
    machine.program("curl", "exit 22")
    done = updating("deploy", **variables)
    assert done.returncode == 1
    assert why in done.stderr
    assert (len(packages(machine)), switched(machine)) == (3, [])


# ---------------------------------------------------------------- publish.sh

PUBLISH = ROOT / ".github" / "actions" / "publish-runbooks" / "publish.sh"


@pytest.fixture
def publishing(machine: Machine) -> Callable[..., subprocess.CompletedProcess[str]]:
    for name in ("a.yaml", "b.yaml"):
        (machine.folder / name).touch()
    machine.program("gh")

    def publish(**variables: str) -> subprocess.CompletedProcess[str]:
        usual = {"RUNBOOKS": "*.yaml", "PUBLISH": "false", "COMMENT": "true", "OVERDUE": "ignore"}
        return machine.run(PUBLISH, GITHUB_STEP_SUMMARY=str(machine.folder / "summary"), **usual | variables)

    return publish


def test_a_pull_request_is_told_what_publishing_would_do(
    machine: Machine, publishing: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    machine.program("matoolkit", '[[ $* == *dry-run* ]] && echo "would publish $3"; true')
    done = publishing(PULL_REQUEST="7")
    assert done.returncode == 0, done.stderr
    lint, first, second, comment = machine.calls
    assert lint == ["matoolkit", "runbook", "lint", "a.yaml", "b.yaml", "--strict", "-o", "github"]
    assert [call[3] for call in (first, second) if "--dry-run" in call] == ["a.yaml", "b.yaml"]
    assert comment[:4] == ["gh", "pr", "comment", "7"]
    assert "would publish b.yaml" in (machine.folder / "summary").read_text(encoding="utf-8")


def test_a_merge_publishes_and_comments_nothing(
    machine: Machine, publishing: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    machine.program("matoolkit")
    assert publishing(PUBLISH="true").returncode == 0
    assert [call[2] for call in machine.calls] == ["lint", "publish", "publish"]
    assert not any("--dry-run" in call for call in machine.calls)


def test_nothing_is_published_if_a_runbook_has_a_finding(
    machine: Machine, publishing: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    machine.program("matoolkit", "[[ $2 != lint ]]")
    assert publishing(PUBLISH="true").returncode == 1
    assert len(machine.calls) == 1
