"""What a function declares that it needs is what it needs, as far as the simulated tenant asks for it."""

import pytest

from matoolkit.worker.clients.failures import Forbidden
from matoolkit.worker.failures import FunctionFailed
from matoolkit.worker.needs import NeedKind
from tests.worker.functions.cases import CASES
from tests.worker.functions.office import FUNCTIONS, Office
from tests.worker.functions.situations import Case

every_function = pytest.mark.parametrize("case", CASES, ids=str)


def grant(office: Office, *names: str) -> None:
    """Let the application have these alone."""
    office.tenant.application.granted = {kind: set(names) for kind in NeedKind}


@every_function
def test_w2_a_function_works_with_exactly_what_it_declares(office: Office, case: Case) -> None:
    case.prepare(office)
    grant(office, *(need.any_of[0] for need in FUNCTIONS.find(case.function).needs))
    office.run(case.function, case.params)
    assert case.is_done(office)


@every_function
def test_w2_a_function_without_any_permission_is_refused_and_says_what_it_needs(office: Office, case: Case) -> None:
    case.prepare(office)
    grant(office)
    with pytest.raises(FunctionFailed) as caught:
        office.run(case.function, case.params)
    assert isinstance(caught.value, Forbidden)
    least = {need.any_of[0] for need in FUNCTIONS.find(case.function).needs}
    assert any(name in caught.value.message for name in least), caught.value.message
