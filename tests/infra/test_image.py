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
