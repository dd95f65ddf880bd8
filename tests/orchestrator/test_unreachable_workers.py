"""Rule M8: no job leaves for a worker that has no subscription, where the bus would drop it without a word."""

import pytest

from matoolkit.domain.states import MemberStatus
from tests.stage import Failing, Stage

from .runbooks import ONE_STEP, TWO_STEPS


@pytest.fixture
def missing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Workers without a subscription."""
    workers: set[str] = set()
    monkeypatch.setattr(stage.bus, "unreached", workers.intersection)
    return workers


def test_m8_a_step_whose_worker_has_no_subscription_fails_and_says_what_to_do(stage: Stage, missing: set[str]) -> None:
    missing.add("worker-02")
    second = "name: license, worker_id: worker-"
    batch = stage.batch(stage.publish(TWO_STEPS.replace(f"{second}01", f"{second}02")), 1)
    stage.answers["Create"] = {"Id": 1}
    stage.due(batch, "prepare")
    stage.run()
    assert stage.states(batch, "u0") == {"create": "succeeded", "license": "failed"}
    (failed,) = [step for step in stage.steps(batch) if step.status == "failed"]
    assert failed.error_type == "WorkerHasNoSubscription"
    assert failed.error_message is not None
    assert "run `matoolkit bus create --worker worker-02`, then retry" in failed.error_message
    assert stage.functions() == ["Create"]
    assert stage.member(batch, "u0").status is MemberStatus.FAILED


def test_m8_a_retry_whose_worker_has_lost_its_subscription_fails_too(stage: Stage, missing: set[str]) -> None:
    batch = stage.batch(stage.publish("retry: {max_retries: 3, interval: 5m}\n" + ONE_STEP), 1)
    stage.answers["Create"] = Failing()
    stage.due(batch, "prepare")
    stage.run()
    missing.add("worker-01")
    stage.clock.sleep(301)
    stage.sweep()
    stage.run()
    assert stage.states(batch, "u0") == {"create": "failed"}
    assert [step.error_type for step in stage.steps(batch)] == ["WorkerHasNoSubscription"]
