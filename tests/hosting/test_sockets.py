"""Ports that are taken, and ports nearby."""

import socket
from contextlib import closing

import pytest

from matoolkit.errors import PortTaken
from matoolkit.hosting.sockets import listening, listening_nearby, port_of


def test_a_port_that_is_taken_is_told_in_words() -> None:
    with closing(listening("127.0.0.1", 0)) as taken, pytest.raises(PortTaken, match=f"port {port_of(taken)}"):
        listening("127.0.0.1", port_of(taken))


def test_if_a_port_is_taken_another_one_will_do() -> None:
    with closing(listening("127.0.0.1", 0)) as taken, closing(listening_nearby("127.0.0.1", port_of(taken))) as other:
        assert port_of(other) != port_of(taken)


def test_no_part_of_an_answer_waits_for_the_part_before_it() -> None:
    with (
        closing(listening("127.0.0.1", 0)) as place,
        closing(socket.create_connection(place.getsockname())),
        closing(place.accept()[0]) as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
