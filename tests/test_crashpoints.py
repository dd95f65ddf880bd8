import multiprocessing

import pytest

from matoolkit.crashpoints import SimulatedCrash, arm, crash_point, crashing, kill_process, known_points

POINT = crash_point("tests.somewhere")


def test_a_point_that_is_not_armed_is_passed() -> None:
    POINT.reached()


def test_an_armed_point_crashes_the_nth_time_it_is_reached_and_only_then() -> None:
    with crashing("tests.somewhere", on_hit=3):
        POINT.reached()
        POINT.reached()
        with pytest.raises(SimulatedCrash, match=r"tests\.somewhere"):
            POINT.reached()
        POINT.reached()
    POINT.reached()


def test_no_handler_of_ordinary_errors_survives_a_crash() -> None:
    assert not issubclass(SimulatedCrash, Exception)


def test_a_misspelt_name_is_the_tests_mistake() -> None:
    with pytest.raises(KeyError, match=r"no crash point is called 'tests\.nowhere'"):
        arm("tests.nowhere")


def test_declaring_a_point_again_gives_the_same_one() -> None:
    assert crash_point("tests.somewhere") is POINT
    assert "tests.somewhere" in known_points()


def test_a_killed_process_is_dead() -> None:
    process = multiprocessing.get_context("spawn").Process(target=_die)
    process.start()
    process.join(timeout=60)
    assert process.exitcode == -9


def _die() -> None:
    point = crash_point("tests.child")
    arm("tests.child", crash=kill_process)
    point.reached()
