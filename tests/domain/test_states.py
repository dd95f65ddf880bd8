from matoolkit.domain.states import (
    ENDED_BATCHES,
    ENDED_PHASES,
    ENDED_STEPS,
    OPEN_PHASES,
    OPEN_STEPS,
    UNFINISHED_BATCHES,
    UNSUCCESSFUL_STEPS,
    BatchStatus,
    PhaseStatus,
    StepStatus,
)


def test_d1_every_state_is_either_open_or_ended() -> None:
    assert set(BatchStatus) == UNFINISHED_BATCHES | ENDED_BATCHES
    assert set(PhaseStatus) == OPEN_PHASES | ENDED_PHASES
    assert set(StepStatus) == OPEN_STEPS | ENDED_STEPS
    assert not UNFINISHED_BATCHES & ENDED_BATCHES
    assert not OPEN_PHASES & ENDED_PHASES
    assert not OPEN_STEPS & ENDED_STEPS


def test_d1_a_step_that_polls_is_open_and_one_that_timed_out_is_not() -> None:
    assert StepStatus.POLLING in OPEN_STEPS
    assert StepStatus.POLL_TIMEOUT in UNSUCCESSFUL_STEPS
    assert StepStatus.SUCCEEDED not in UNSUCCESSFUL_STEPS
