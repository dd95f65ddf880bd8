"""Rule M8: where messages go."""

import pytest

from matoolkit.bus import topology
from matoolkit.runbook.values import MAX_WORKER_ID


def test_m8_events_and_results_go_to_the_orchestrator_and_a_job_to_its_worker() -> None:
    assert topology.subscription_for("orchestrator-events", {}).name == "orchestrator"
    assert topology.subscription_for("worker-results", {}).name == "orchestrator"
    job = topology.subscription_for("worker-jobs", {"WorkerId": "worker-01"})
    assert (job.name, job.filter_property, job.filter_value) == ("worker-worker-01", "WorkerId", "worker-01")


def test_m8_there_is_no_other_topic() -> None:
    with pytest.raises(ValueError, match="no topic"):
        topology.subscription_for("nope", {})


def test_the_longest_worker_id_makes_a_subscription_that_service_bus_allows() -> None:
    assert len(topology.jobs_of_worker("w" * MAX_WORKER_ID).name) == 50
