"""Rules S1 to S8 on real tables: what waits for people begins when enough of them have signed off, and not before."""

from datetime import timedelta
from functools import partial

import pytest

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.approvals import ApprovalState, waiting_approvals
from matoolkit.admin.explaining import explain_batch
from matoolkit.admin.gating import Subject, pause, resume
from matoolkit.admin.retrying import retry_members
from matoolkit.admin.retryplan import Terms
from matoolkit.admin.signing import sign_off
from matoolkit.domain.retrying import DataChoice
from matoolkit.domain.signoff import Signer
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus, SignOff, SignOffSubject
from matoolkit.domain.why import WhyKind
from matoolkit.errors import (
    AlreadyBegun,
    AlreadySigned,
    GateShut,
    NobodySigned,
    NotAmongSigners,
    NotAsShown,
    NothingToSign,
    NothingToWithdraw,
    PublisherCannotSign,
    TooEarlyToSign,
)
from matoolkit.runbook.parse import parse_runbook
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import (
    BatchRow,
    NewBatch,
    Reschedule,
    insert_batches,
    lock_batches,
    reschedule_batches,
)
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.phases import NewPhase, insert_phases
from tests.signing import LOCAL, PIPELINE, Signers, person
from tests.stage import Failing, Stage
from tests.threads import in_threads

CUTOVER = """\
phases:
  - name: cutover
    offset: T-5d
    approval: {RULE}
    steps:
      - {name: move, worker_id: worker-01, function: Move}
      - {name: tell, worker_id: worker-01, function: Tell}
"""
INIT = """\
init:
  - {name: announce, worker_id: worker-01, function: Announce}
init_approval: {RULE}
phases:
  - name: cutover
    offset: T-5d
    steps:
      - {name: move, worker_id: worker-01, function: Move}
"""


@pytest.fixture
def signers(stage: Stage) -> Signers:
    return Signers(stage)


def detected(stage: Stage, rule: str = "count: 2", document: str = CUTOVER, members: int = 2) -> BatchRow:
    """Detect a batch whose first phase is due and waits for sign-off."""
    return stage.batch(stage.publish(document.replace("RULE", rule)), members)


def begin_due(stage: Stage) -> list[str]:
    """Let phases begin as the scheduler does, and return the functions of the jobs that leave."""
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    stage.handle()
    return [job.function_name for job in stage.take_jobs()]


def begun(stage: Stage, signers: Signers, members: int = 2) -> BatchRow:
    """Let a phase begin with two sign-offs, and its members do its first step."""
    batch = detected(stage, members=members)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    stage.handle()
    return batch


def test_s1_s8_a_phase_begins_when_enough_people_have_signed_off(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    assert begin_due(stage) == []
    first = signers.approve(batch, "ann")
    assert (first.asking.state, first.asking.waits) == (
        ApprovalState.WAITING,
        f"waits for approval: 1 of 2 given (ann {stage.now:%H:%M} UTC)",
    )
    assert begin_due(stage) == []
    assert signers.approve(batch, "bob").asking.state is ApprovalState.GIVEN
    assert begin_due(stage) == ["Move", "Move"]


def test_s2_an_approval_of_yesterdays_list_is_refused_with_what_changed(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, members=3)
    seen = signers.shown(batch).digest
    stage.join(batch, "late")
    stage.leave(batch, "u0")
    with pytest.raises(NotAsShown) as refused:
        signers.approve(batch, "ann", digest=seen)
    assert str(refused.value).endswith("1 member joined (late); 1 member left (u0)")
    assert signers.approve(batch, "ann").asking.members == 3


def test_s2_a_reschedule_and_a_version_are_told_when_an_old_list_is_approved(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    seen = signers.shown(batch).digest
    reschedule(stage, batch)
    with pytest.raises(NotAsShown, match="T was"):
        signers.approve(batch, "ann", digest=seen)
    newer = stage.publish(CUTOVER.replace("RULE", "count: 1"))
    stage.change_version(batch, newer)
    with pytest.raises(NotAsShown, match="version 1 was shown, and it is version 2"):
        signers.approve(batch, "ann", digest=seen)


def reschedule(stage: Stage, batch: BatchRow) -> None:
    assert batch.batch_start_time is not None
    with stage.store.transaction() as tx:
        lock_batches(tx, [batch.id])
        assert reschedule_batches(tx, [Reschedule(batch.id, batch.batch_start_time + timedelta(hours=1))])


def test_s3_s8_who_joins_later_waits_alone_for_another_sign_off(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers)
    stage.take_jobs()
    stage.join(batch, "late", "later")
    stage.handle()
    assert stage.take_jobs() == []
    request = signers.shown(batch)
    assert (request.asking.state, request.asking.members) == (ApprovalState.WAITING, 2)
    assert list(request.first_members) == ["late", "later"]
    signers.approve(batch, "ann")
    stage.handle()
    assert stage.take_jobs() == [], "one of two is not enough for them either"
    signers.approve(batch, "cleo")
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Move", "Move"]
    assert signers.shown(batch).asking.state is ApprovalState.BEGUN


def test_s3_a_sign_off_does_not_cover_who_joins_after_it(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    signers.approve(batch, "ann")
    stage.join(batch, "between")
    signers.approve(batch, "bob")
    stage.join(batch, "late")
    assert begin_due(stage) == ["Move", "Move"], "only those whom both have seen"
    assert stage.states(batch, "between")["move"] == stage.states(batch, "late")["move"] == "pending"
    assert list(signers.shown(batch).first_members) == ["between", "late"]


def test_s3_who_returns_has_joined_again(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    stage.leave(batch, "u1")
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    stage.come_back(batch, "u1")
    assert begin_due(stage) == ["Move"]
    assert list(signers.shown(batch).first_members) == ["u1"]


def test_s3_who_was_rejected_fails_and_the_others_go_on(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers)
    stage.join(batch, "late")
    stage.handle()
    signers.reject(batch, "kwu", reason="not in the plan")
    stage.run()
    late = stage.member(batch, "late")
    assert late.status is MemberStatus.FAILED
    (failed,) = (step for step in stage.steps(batch) if step.batch_member_id == late.id and step.step_index == 0)
    assert (failed.error_type, failed.error_message) == (
        "NotApproved",
        "kwu did not approve late, who joined later: not in the plan",
    )
    assert stage.states(batch) == {"move": "succeeded", "tell": "succeeded"}
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_s3_who_was_rejected_by_mistake_is_let_in_when_the_rejection_is_taken_back(
    stage: Stage, signers: Signers
) -> None:
    batch = begun(stage, signers)
    stage.join(batch, "late")
    stage.handle()
    signers.reject(batch, "kwu", reason="the wrong list")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    signers.withdraw(batch, "kwu")
    retry_members(stage.store, stage.bus, batch.id, terms=Terms(data=DataChoice.KEPT), by="anna")
    stage.handle()
    assert list(signers.shown(batch).first_members) == ["late"]
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    stage.run()
    assert stage.member(batch, "late").status is MemberStatus.ACTIVE
    assert stage.states(batch, "late") == {"move": "succeeded", "tell": "succeeded"}


def test_s3_who_leaves_needs_no_other_sign_off(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, members=3)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    stage.leave(batch, "u0")
    assert begin_due(stage) == ["Move", "Move"]


def test_s3_changed_data_is_counted_and_voids_nothing(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, "count: 1")
    stage.refresh(batch, "u1", {"Email": "u1", "Name": "before"})
    stage.later(hours=1)
    signers.approve(batch, "ann")
    stage.later(hours=1)
    stage.refresh(batch, "u0", {"Email": "u0", "Name": "new"})
    request = signers.shown(batch)
    assert (request.data_changed, request.asking.state) == (1, ApprovalState.GIVEN)
    assert begin_due(stage) == ["Move", "Move"]


def test_s4_the_same_person_does_not_count_twice(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    signers.approve(batch, "ann")
    for name in ("ann", "ANN"):
        with pytest.raises(AlreadySigned, match="approved"):
            signers.approve(batch, name)
    stage.join(batch, "late")
    assert signers.approve(batch, "ann").asking.state is ApprovalState.WAITING, "of a longer list, and still one person"


def test_s4_two_who_approve_at_once_are_two(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    seen = signers.shown(batch).digest
    signers.approve(batch, "ann", digest=seen)
    assert signers.approve(batch, "bob", digest=seen).asking.state is ApprovalState.GIVEN


@pytest.mark.parametrize(
    ("by", "rule", "error"),
    [
        (person("zoe"), "by: [ann@contoso.com]", NotAmongSigners),
        (person("zoe", "Approver"), "by: ['role:ChangeBoard']", NotAmongSigners),
        (person("anna"), "not_publisher: true", PublisherCannotSign),
        (person("ANNA"), "not_publisher: true", PublisherCannotSign),
        (PIPELINE, "count: 1", NobodySigned),
    ],
    ids=["name", "role", "publisher", "publisher in capitals", "application"],
)
def test_s4_who_may_not_sign_is_refused(
    stage: Stage, signers: Signers, by: Signer, rule: str, error: type[Exception]
) -> None:
    batch = detected(stage, rule)
    with pytest.raises(error):
        signers.approve(batch, by)
    assert begin_due(stage) == []


@pytest.mark.parametrize(
    ("by", "rule"),
    [
        (person("Ann@Contoso.com"), "by: [ann@contoso.com]"),
        (person("zoe", "Approver", "changeboard"), "by: ['role:ChangeBoard']"),
        (person("anna"), "count: 1"),
        (person("bob"), "not_publisher: true"),
        (LOCAL, "{count: 2, by: [ann@contoso.com, bob@contoso.com], not_publisher: true, valid: 1d}"),
    ],
    ids=["name", "role", "publisher", "not the publisher", "local"],
)
def test_s4_who_may_sign_does(stage: Stage, signers: Signers, by: Signer, rule: str) -> None:
    batch = detected(stage, rule.strip("{}"))
    signers.approve(batch, by)
    assert begin_due(stage) == ["Move", "Move"]


def test_s4_the_record_says_whether_a_person_had_signed_in(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    (given,) = signers.approve(batch, LOCAL).asking.asked.given
    assert (given.signed_by, given.is_signed_in) == ("local", False)


def test_s3_who_joins_before_the_phase_begins_is_told_of_and_can_be_signed_off_too(
    stage: Stage, signers: Signers
) -> None:
    batch = detected(stage)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    assert signers.shown(batch).asking.waits is None
    stage.join(batch, "late")
    shown = signers.shown(batch).asking
    assert (shown.state, shown.uncovered) == (ApprovalState.GIVEN, 1)
    assert shown.waits == "1 member joined since, and waits in the phase for another approval"
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    shown = signers.shown(batch).asking
    assert (shown.waits, shown.uncovered) == (None, 0)
    assert begin_due(stage) == ["Move", "Move", "Move"]


def test_s3_what_is_asked_about_late_joiners_says_that_they_are(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    begin_due(stage)
    stage.join(batch, "late")
    assert signers.shown(batch).asking.waits == "who joined after the approval waits for another: 0 of 2 given"


def test_s5_a_reschedule_voids_what_was_given(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    reschedule(stage, batch)
    assert begin_due(stage) == []
    assert signers.shown(batch).asking.waits == "waits for approval: 0 of 2 given"


def test_s5_a_new_version_voids_what_was_given(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    stage.change_version(batch, stage.publish(CUTOVER.replace("RULE", "count: 2")))
    assert begin_due(stage) == []


def test_s5_a_sign_off_that_is_too_old_when_it_is_used_does_not_count(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, "{count: 2, valid: 2d}".strip("{}"))
    signers.approve(batch, "ann")
    stage.later(days=1)
    signers.approve(batch, "bob")
    stage.later(days=1)
    assert begin_due(stage) == []
    assert "1 of 2 given (bob" in (signers.shown(batch).asking.waits or "")
    signers.approve(batch, "ann")
    assert begin_due(stage) == ["Move", "Move"]


def test_s5_what_a_phase_began_with_stays_good(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    pause(stage.store, stage.bus, Subject(), by="anna", reason="a quiet week", let_finish=True)
    stage.handle()
    reschedule(stage, batch)
    stage.later(days=30)
    assert stage.take_jobs() == []
    resume(stage.store, stage.bus, Subject(), by="anna", reason=None)
    stage.handle()
    assert len(stage.take_jobs()) == 2


def test_s5_a_phase_that_never_began_is_opened_for_who_is_retried_with_what_was_given(
    stage: Stage, signers: Signers
) -> None:
    prepare = """\
  - name: prepare
    offset: T-7d
    steps: [{name: copy, worker_id: worker-01, function: Copy}]
"""
    document = CUTOVER.replace("phases:\n", f"phases:\n{prepare}")
    batch = detected(stage, "count: 1", document)
    signers.approve(batch, "ann")
    stage.due(batch, "prepare")
    stage.answers["Copy"] = Failing("no")
    stage.run()
    assert begin_due(stage) == []
    assert stage.phases(batch)["cutover"] == "skipped"
    stage.answers.clear()
    stage.retry(batch, "u0")
    stage.run()
    assert stage.functions().count("Move") == 1
    assert waiting_approvals(stage.store) == []


def test_s6_a_rejection_outweighs_approvals_until_its_author_takes_it_back(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    signers.reject(batch, "kwu", reason="payroll")
    for name in ("ann", "bob"):
        assert signers.approve(batch, name).asking.state is ApprovalState.REJECTED
    assert begin_due(stage) == []
    assert "kwu rejected it" in (signers.shown(batch).asking.waits or "")
    with pytest.raises(AlreadySigned, match="rejected"):
        signers.approve(batch, "kwu")
    with pytest.raises(NothingToWithdraw):
        signers.withdraw(batch, "zoe")
    assert signers.withdraw(batch, "kwu").asking.state is ApprovalState.GIVEN
    assert begin_due(stage) == ["Move", "Move"]


def test_s6_a_rejection_is_of_that_list_only(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, "count: 1", members=3)
    signers.reject(batch, "kwu", reason="u0 is in it")
    stage.leave(batch, "u0")
    signers.approve(batch, "ann")
    assert begin_due(stage) == ["Move", "Move"]


def test_s6_an_approval_can_be_withdrawn_until_the_phase_begins(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    for name in ("ann", "bob"):
        signers.approve(batch, name)
    assert signers.withdraw(batch, "bob").asking.state is ApprovalState.WAITING
    assert begin_due(stage) == []
    signers.approve(batch, "bob")
    begin_due(stage)
    with pytest.raises(AlreadyBegun):
        signers.withdraw(batch, "bob")
    with pytest.raises(AlreadyBegun):
        signers.approve(batch, "cleo")


def test_s7_sign_offs_are_taken_from_a_time_on(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, "from: T-4d")
    assert signers.shown(batch).asking.state is ApprovalState.EARLY
    with pytest.raises(TooEarlyToSign):
        signers.approve(batch, "ann")
    stage.later(days=1)
    signers.approve(batch, "ann")
    assert begin_due(stage) == ["Move", "Move"]


def test_s7_nothing_is_approved_by_time(stage: Stage) -> None:
    detected(stage, "until: T-4d")
    for _ in range(20):
        stage.later(days=1)
        assert begin_due(stage) == []


def test_s1_s8_init_waits_and_is_woken_by_the_last_sign_off(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, document=INIT)
    stage.handle()
    assert (stage.take_jobs(), stage.reload(batch).status) == ([], BatchStatus.INIT_DISPATCHED)
    signers.approve(batch, "ann", "init")
    stage.handle()
    assert stage.take_jobs() == []
    signers.approve(batch, "bob", "init")
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Announce"]
    assert signers.shown(batch, "init").asking.state is ApprovalState.BEGUN
    with pytest.raises(AlreadyBegun):
        signers.reject(batch, "kwu", "init")


@pytest.mark.parametrize("change", ["leave", "join"])
def test_s6_an_init_whose_rejected_list_changes_begins_with_the_approvals_that_it_has(
    stage: Stage, signers: Signers, change: str
) -> None:
    """The defect: a rejection that counts no more opens the gate, and nobody is told."""
    batch = detected(stage, "count: 1", INIT, members=3)
    signers.reject(batch, "kwu", "init", reason="u0 is in it")
    signers.approve(batch, "ann", "init")
    stage.handle()
    assert stage.take_jobs() == []
    getattr(stage, change)(batch, "u0" if change == "leave" else "late")
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Announce"]


def test_x6_an_init_that_goes_on_under_an_older_version_is_among_what_waits(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, "count: 1", INIT)
    stage.handle()
    stage.change_version(batch, stage.publish(INIT.replace("init_approval: {RULE}\n", "")))
    (waiting,) = waiting_approvals(stage.store)
    assert (waiting.asked.subject, waiting.asked.version) == (SignOffSubject.INIT, 1)
    signers.approve(batch, "ann", "init")
    assert waiting_approvals(stage.store) == []


def test_s1_a_rejected_init_waits_and_an_advance_says_why(stage: Stage, signers: Signers) -> None:
    batch = manual(stage, INIT.replace("RULE", "count: 1"))
    with pytest.raises(GateShut, match="waits for approval: 0 of 1 given"):
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
    signers.approve(batch, "ann", "init")
    assert advance_batch(stage.store, stage.bus, batch.id, by="anna").action == "init_dispatched"
    stage.handle()
    assert [job.function_name for job in stage.take_jobs()] == ["Announce"]


def test_x1_a_manual_batch_whose_init_waits_for_approval_says_so(stage: Stage, signers: Signers) -> None:
    batch = manual(stage, INIT.replace("RULE", "count: 1"))
    with pytest.raises(GateShut, match="the init of batch 1 cannot begin: waits for approval: 0 of 1 given"):
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
    assert [why.sentence for why in explain_batch(stage.store, batch.id).whys] == [
        "what comes first begins when a person advances the batch",
        "waits for approval: 0 of 1 given",
    ]
    signers.approve(batch, "ann", "init")
    assert [why.kind for why in explain_batch(stage.store, batch.id).whys] == [WhyKind.ADVANCE]


def test_s7_in_a_manual_batch_times_do_not_count(stage: Stage, signers: Signers) -> None:
    batch = manual(stage, CUTOVER.replace("RULE", "{from: T-1d, until: T-0}".strip("{}")))
    with pytest.raises(GateShut, match="waits for approval: 0 of 1 given"):
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
    signers.approve(batch, "ann")
    assert advance_batch(stage.store, stage.bus, batch.id, by="anna").phase_name == "cutover"
    stage.handle()
    assert len(stage.take_jobs()) == 2


def manual(stage: Stage, document: str) -> BatchRow:
    runbook = stage.publish(document)
    with stage.store.transaction() as tx:
        new = NewBatch(runbook.id, runbook.name, None, BatchStatus.DETECTED, is_manual=True, created_by="anna")
        batch = insert_batches(tx, [new], stage.now)[0]
        rows = [NewMember(batch.id, key, f'{{"Email": "{key}"}}', "h", caught_up_at=stage.now) for key in ("u0", "u1")]
        insert_members(tx, rows, stage.now)
        phases = parse_runbook(runbook.yaml_content).phases
        insert_phases(
            tx,
            [
                NewPhase(batch.id, runbook.version, phase.name, index, phase.offset.minutes, None, PhaseStatus.PENDING)
                for index, phase in enumerate(phases)
            ],
        )
    return batch


def test_x6_what_waits_is_listed_the_oldest_deadline_first_and_what_is_given_is_not(
    stage: Stage, signers: Signers
) -> None:
    runbook = stage.publish(CUTOVER.replace("RULE", "until: T-0"))
    later, sooner = stage.batch_at(runbook, 1, days=9), stage.batch_at(runbook, ["x"], days=6)
    assert [one.batch.id for one in waiting_approvals(stage.store)] == [sooner.id, later.id]
    signers.approve(sooner, "ann")
    assert [one.batch.id for one in waiting_approvals(stage.store)] == [later.id]
    assert len(waiting_approvals(stage.store, everything=True)) == 2


def test_s2_what_asks_for_no_sign_off_takes_none(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, document=CUTOVER.replace("    approval: {RULE}\n", ""))
    with pytest.raises(ValueError, match="not enough values"):
        signers.shown(batch)
    phase = stage.phase_rows(batch)[0]
    with pytest.raises(NothingToSign):
        sign_off(stage.store, stage.bus, batch.id, phase.id, SignOff.APPROVE, by=person("ann"), digest="v1")


def test_a5_every_act_is_in_the_audit_log(stage: Stage, signers: Signers) -> None:
    batch = detected(stage)
    signers.approve(batch, "ann")
    signers.reject(batch, "kwu")
    signers.withdraw(batch, "kwu")
    with stage.store.reading() as tx:
        entries = audit_page(tx, batch_id=batch.id)
    assert [(entry.action, entry.actor) for entry in entries] == [
        ("approval.withdraw", "kwu"),
        ("approval.reject", "kwu"),
        ("approval.approve", "ann"),
    ]


def test_s3_a_row_that_is_added_to_a_manual_batch_that_waits_is_not_covered(stage: Stage, signers: Signers) -> None:
    batch = manual(stage, CUTOVER.replace("RULE", "count: 1"))
    signers.approve(batch, "ann")
    with stage.store.transaction() as tx:
        lock_batches(tx, [batch.id])
        # Before a batch begins there is nothing to catch up with.
        late = NewMember(batch.id, "late", '{"Email": "late"}', "h", caught_up_at=stage.now)
        insert_members(tx, [late], stage.now)
    advance_batch(stage.store, stage.bus, batch.id, by="anna")
    stage.handle()
    assert len(stage.take_jobs()) == 2
    assert list(signers.shown(batch).first_members) == ["late"]


def test_a5_what_was_signed_is_shown_after_the_end_and_nothing_is_signed_then(stage: Stage, signers: Signers) -> None:
    batch = begun(stage, signers)
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    request = signers.shown(batch)
    assert request.asking.state is ApprovalState.BEGUN
    assert [one.signed_by for one in request.asking.asked.given] == ["ann", "bob"]
    with pytest.raises(NothingToSign, match="the batch is completed"):
        signers.approve(batch, "cleo")
    assert waiting_approvals(stage.store, everything=True) == []


def test_s4_people_who_sign_at_the_same_moment_all_count_once(stage: Stage, signers: Signers) -> None:
    batch = detected(stage, "count: 4")
    names = ("ann", "bob", "cleo", "dan", "ANN", "bob")

    def signed(name: str) -> bool:
        try:
            signers.approve(batch, name)
        except AlreadySigned:
            return False
        return True

    outcomes = in_threads([partial(signed, name) for name in names])
    assert sorted(outcomes) == [False, False, True, True, True, True]
    assert signers.shown(batch).asking.state is ApprovalState.GIVEN
    assert begin_due(stage) == ["Move", "Move"]


def test_s3_of_one_who_joins_while_others_sign_the_sign_off_covers_all_or_refuses(
    stage: Stage, signers: Signers
) -> None:
    batch = detected(stage, "count: 1")
    seen = signers.shown(batch).digest

    def sign() -> bool:
        try:
            signers.approve(batch, "ann", digest=seen)
        except NotAsShown:
            return False
        return True

    def join() -> bool:
        stage.join(batch, "late")
        return True

    signed, _ = in_threads([sign, join])
    jobs = begin_due(stage)
    assert jobs == (["Move", "Move"] if signed else []), "who joined is never covered by it"


def test_s6_a_rejection_outweighs_approvals_in_a_phase_that_is_opened_for_a_retry(
    stage: Stage, signers: Signers
) -> None:
    """The defect: what was signed off was used for a phase that had not begun, also if somebody had rejected it."""
    prepare = "  - {name: prepare, offset: T-6d, steps: [{name: ask, worker_id: worker-01, function: Ask}]}\n"
    document = CUTOVER.replace("phases:\n", f"phases:\n{prepare}")
    batch = detected(stage, "count: 1", document, members=1)
    signers.approve(batch, "ann")
    signers.reject(batch, "kwu")
    stage.due(batch, "prepare")
    stage.handle()
    (job,) = stage.take_jobs()
    stage.answer(job, Failing())
    stage.handle()
    assert begin_due(stage) == []
    assert {phase.status for phase in stage.phase_rows(batch)} == {PhaseStatus.FAILED, PhaseStatus.SKIPPED}
    retry_members(stage.store, stage.bus, batch.id, terms=Terms(data=DataChoice.KEPT), by="anna")
    stage.run()
    assert stage.functions() == ["Ask", "Ask"]
    signers.withdraw(batch, "kwu")
    stage.run()
    assert stage.functions() == ["Ask", "Ask", "Move", "Tell"]
