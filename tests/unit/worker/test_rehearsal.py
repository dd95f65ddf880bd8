"""Functions that only pretend answer under every built-in name, and tell nothing secret."""

import logging
from typing import Any

import pytest

from matoolkit.runbook.catalogue import BUILT_IN, Function
from matoolkit.worker.rehearsal import rehearsal

NOBODY: Any = None
VALUES: dict[str, Any] = {"text": "ada", "true or false": True, "a list": ["a"], "a mapping": {"a": 1}, "anything": 1}


@pytest.mark.parametrize("function", BUILT_IN.values(), ids=lambda function: function.name)
def test_the_rehearsal_answers_under_every_built_in_name(
    function: Function, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("matoolkit"), "propagate", True)
    caplog.set_level(logging.INFO, "matoolkit.worker.rehearsal")
    given = {one.name: VALUES[one.kind] for one in function.parameters} | {
        one.name: "top-secret" for one in function.parameters if one.is_secret
    }
    answer = rehearsal().find(function.name).run(NOBODY, given)
    assert "top-secret" not in f"{answer}{caplog.text}"
    assert f"{function.name} {{" in caplog.text
    assert (isinstance(answer, dict) and "complete" in answer) == function.name.startswith("Test-")


def test_the_rehearsal_gives_the_same_account_the_same_id() -> None:
    first, again = (
        rehearsal()
        .find("New-EntraUser")
        .run(NOBODY, {"DisplayName": "Ada", "MailNickname": "ada", "UserPrincipalName": name})
        for name in ("ada@fabrikam.com", "Ada@Fabrikam.com")
    )
    assert first["Id"] == again["Id"]
    assert first["Created"] is True
