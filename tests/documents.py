"""Runbooks for tests, with as little said about them as a test needs."""

from collections.abc import Mapping

PHASES = {"prepare": "T-5d", "cutover": "T-0", "verify": "T+2h"}


def document(
    phases: Mapping[str, str] = PHASES,
    *,
    name: str = "wave",
    key: str = "email",
    init: bool = False,
    remark: str = "",
    function: str = "Set-EntraUserEnabled",
) -> str:
    """Write a runbook whose phases have one step each."""
    lines = [
        f"name: {name}",
        f"description: {remark or 'people'}",
        "data_source:",
        "  type: sql",
        "  connection: PEOPLE_URL",
        f"  query: SELECT {key}, cutover FROM people",
        f"  primary_key: {key}",
        "  batch_time_column: cutover",
        *(["init:", *_step("announce", function, "{{_batch_id}}")] if init else []),
        "phases:",
    ]
    for phase, offset in phases.items():
        lines += [
            f"  - name: {phase}",
            f"    offset: {offset}",
            "    steps:",
            *_step("do", function, "{{" + key + "}}"),
        ]
    return "\n".join(lines) + "\n"


def _step(name: str, function: str, user: str) -> list[str]:
    return [
        f"      - name: {name}",
        "        worker_id: worker-01",
        f"        function: {function}",
        f'        params: {{UserId: "{user}", Enabled: true}}',
    ]
