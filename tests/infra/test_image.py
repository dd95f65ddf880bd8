"""The container image and the workflows, as far as they can be told without a container and without GitHub."""

import re
from pathlib import Path

import pytest
import yaml

from tests.infra.bicep import template, value
from tests.infra.test_templates import WORKER

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
ACTIONS = sorted(ROOT.glob(".github/actions/*/action.yml"))


def test_every_stage_that_runs_ends_without_root() -> None:
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)[1:]
    for stage in stages[1:]:
        assert re.findall(r"^USER (\S+)", stage, re.MULTILINE)[-1] == "10001:10001"


def test_the_signal_reaches_the_process_itself() -> None:
    assert 'ENTRYPOINT ["matoolkit"]' in DOCKERFILE
    assert "STOPSIGNAL SIGTERM" in DOCKERFILE


def test_w1_the_platform_asks_where_the_image_answers() -> None:
    port = value(template(WORKER).variables["healthPort"])
    assert f"--health-port {port}" in DOCKERFILE
    assert str(port) in re.findall(r"^EXPOSE (.+)$", DOCKERFILE, re.MULTILINE)[0].split()


def test_only_what_the_image_needs_is_sent_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    wanted = re.findall(r"^COPY (?!--from)(.+) /build/$", DOCKERFILE, re.MULTILINE)[0].split()
    assert ignored == ["*", *(f"!{path}" for path in sorted(wanted))]


def test_functions_can_be_baked_in() -> None:
    example = (ROOT / "examples" / "image" / "Dockerfile").read_text(encoding="utf-8")
    (folder,) = re.findall(r"^COPY .* (\w+) /functions$", example, re.MULTILINE)
    assert (ROOT / "examples" / folder).is_dir()
    assert "CUSTOM_MODULES_PATH=/functions" in example


@pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS], ids=lambda path: path.parent.name + "/" + path.name)
def test_a_workflow_holds_no_secret_and_uses_only_what_cannot_change(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "secrets." not in text
    for used in re.findall(r"uses: (.+)", text):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_nothing_that_a_job_does_not_ask_for(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"].items() <= {"actions": "read", "contents": "read", "id-token": "write"}.items()
        assert job["timeout-minutes"] <= 60


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_step_of_a_workflow_fails_if_any_program_of_a_pipe_does(path: Path) -> None:
    """GitHub's own choice of a shell looks only at the last one, which is often `tee`."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    shell = workflow.get("defaults", {}).get("run", {}).get("shell")
    assert shell == "bash" or not any(re.search(r"[^|]\|[^|]", run) for run in runs)


GUIDE = (ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text(encoding="utf-8")
CLOUDS = (ROOT / "docs" / "how-to" / "other-clouds.md").read_text(encoding="utf-8")


def variables(page: str, heading: str) -> set[str]:
    """Return the variables in the first column of a table of a page."""
    (table,) = re.findall(rf"^\| {re.escape(heading)} \|.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    return set(re.findall(r"`([A-Z_]+)`", "".join(line.split("|")[1] for line in table.splitlines())))


def test_the_guide_names_every_variable_of_the_workflows() -> None:
    used = {name for path in WORKFLOWS for name in re.findall(r"vars\.(\w+)", path.read_text(encoding="utf-8"))}
    of_environment = variables(GUIDE, "variable") | variables(GUIDE, "variable of the environment")
    of_clouds = variables(CLOUDS, "variable of the GitHub environment")
    assert used == of_environment | of_clouds | variables(GUIDE, "variable of the repository")


def test_what_github_reads_before_it_knows_the_environment_is_a_variable_of_the_repository() -> None:
    """Where a job runs, and whether it does, is decided before the variables of its environment are there."""
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()]
    early = {
        name for job in jobs for part in ("runs-on", "if") for name in re.findall(r"vars\.(\w+)", str(job.get(part)))
    }
    assert early == variables(GUIDE, "variable of the repository")
