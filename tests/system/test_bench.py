"""The benches run; what they measure is their own matter."""

import re
from pathlib import Path

import pytest
from bench import measuring, servicebus
from bench.compare import bars_of, is_met, table_of
from bench.contestants import BARE_FULL, BARS, CONTESTANTS, FULL, PLAIN_FULL, THREADS, Bar, Contestant, Costs
from bench.latency import latency
from bench.tick import line_of
from bench.wave import Wave

from matoolkit.store import open_store
from matoolkit.store.upgrade import upgrade
from tests.servers.servicebus.fixtures import MISSING

HERE = Path(__file__).parents[2]
REQUIREMENTS = HERE / "bench" / "peers" / "requirements"


@pytest.mark.parametrize("contestant", [FULL, THREADS, PLAIN_FULL, BARE_FULL], ids=lambda one: one.name)
def test_our_system_and_the_bare_loop_do_the_work_and_say_what_it_cost(contestant: Contestant) -> None:
    costs = contestant.run({}, members=5, steps=2)
    assert costs.steps_per_s > 0
    assert costs.peak_mib > 1


def test_what_was_measured_is_told_with_its_spread_and_the_bars() -> None:
    found = {FULL: [Costs(speed, 2, 90, 0) for speed in (10, 40, 30)], BARE_FULL: [Costs(60, 1, 80, 0)] * 3}
    assert "| ours, SQLite FULL | 30 | 10 to 40 | 2.000 | 90 MiB | 0.0 |" in table_of(found)
    speed, cpu = Bar(FULL, BARE_FULL, 1 / 3), Bar(FULL, BARE_FULL, 1, "cpu_s_per_1000")
    assert (is_met(speed, found), is_met(cpu, found)) == (True, False)
    told = bars_of([speed, cpu], found)
    assert "| 0.50x | 0.17x to 0.67x | at least 0.333x | met |" in told
    assert "| 0.50x | 0.50x to 0.50x | at least 1x | missed |" in told


def test_every_bar_is_about_contestants_that_are_measured() -> None:
    assert {one for bar in BARS for one in (bar.ours, bar.other)} <= set(CONTESTANTS)


def test_the_time_from_each_result_to_the_next_job_is_measured(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/state.db")
    upgrade(store)
    found = latency(store, "idle", [Wave(store, 1, 4), Wave(store, 2, 2)])
    store.close()
    assert len(found.handed_over) == len(found.published) == 3 + 2
    assert all(taken > 0 for taken in found.handed_over)


def test_a_tick_is_measured_beside_one_that_asks_for_each_row_alone() -> None:
    assert line_of(60).startswith("| 60 | ")


def test_new_results_take_the_place_of_the_old_ones_and_leave_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "RESULTS.md"
    results.write_text("# Measured\n\n## One, 2026-01-01\n\nold\n\n## Two, 2026-01-01\n\nkept\n")
    monkeypatch.setattr(measuring, "RESULTS", results)
    for number in (1, 2):
        measuring.record("One", "medians.", f"| new {number} |")
        measuring.record("Three", "medians.", "| three |")
    text = results.read_text()
    assert re.findall(r"^## (\w+)", text, re.MULTILINE) == ["One", "Two", "Three"]
    assert "| new 2 |" in text
    assert "kept" in text
    assert "old" not in text
    assert "| new 1 |" not in text


def test_what_others_need_is_pinned_and_made_by_the_makefile() -> None:
    peers = re.search(r"^PEERS +:= (.+)$", (HERE / "Makefile").read_text(), re.MULTILINE)
    assert peers is not None
    assert {file.stem for file in REQUIREMENTS.glob("*.txt")} == set(peers[1].split())
    lines = [line for file in REQUIREMENTS.glob("*.txt") for line in file.read_text().splitlines()]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    assert {one.venv for one in CONTESTANTS if one.venv} <= set(peers[1].split())


@pytest.mark.service_bus
@pytest.mark.waits
def test_a_message_over_service_bus_is_measured_beside_the_bare_sdk() -> None:
    pytest.importorskip("proton", reason=MISSING)
    with servicebus.namespace() as server:
        ratios, told = servicebus.throughput(server, 50)
        taken = servicebus.job_to_result(server, 3)
    assert len(ratios) == 2
    assert "none was lost, 0 came again, and 50 counted as settled" in told
    assert len(taken) == 3
