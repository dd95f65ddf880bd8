"""A token is asked for once, and again before it ends or when it is refused."""

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.tokens import LEAST_SECONDS_LEFT, KeptToken, Token
from tests.databases import NOON
from tests.threads import in_threads

HOUR = 3600


class Issuer:
    """Issues numbered tokens for an hour, or fails."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.count = 0
        self.is_away = False

    def __call__(self) -> Token:
        if self.is_away:
            raise LookupError("away")
        self.count += 1
        return Token(f"token-{self.count}", self.clock.now().timestamp() + HOUR)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def issuer(clock: VirtualClock) -> Issuer:
    return Issuer(clock)


def test_a_token_is_asked_for_once_for_all_threads(issuer: Issuer, clock: VirtualClock) -> None:
    kept = KeptToken(issuer, clock)
    assert issuer.count == 0, "nothing is asked for before it is needed"
    assert set(in_threads([kept.token] * 8)) == {"token-1"}


def test_a_token_is_replaced_before_it_ends(issuer: Issuer, clock: VirtualClock) -> None:
    kept = KeptToken(issuer, clock)
    kept.token()
    clock.sleep(HOUR - LEAST_SECONDS_LEFT)
    assert kept.token() == "token-1"
    clock.sleep(1)
    assert kept.token() == "token-2"


def test_a_token_that_was_refused_is_replaced_once(issuer: Issuer, clock: VirtualClock) -> None:
    kept = KeptToken(issuer, clock)
    refused = kept.token()
    assert set(in_threads([lambda: kept.token(refused=refused)] * 8)) == {"token-2"}


def test_a_token_that_cannot_be_had_is_asked_for_again(issuer: Issuer, clock: VirtualClock) -> None:
    kept = KeptToken(issuer, clock)
    issuer.is_away = True
    with pytest.raises(LookupError):
        kept.token()
    issuer.is_away = False
    assert kept.token() == "token-1"


def test_a_token_does_not_show_its_text() -> None:
    assert "secret" not in repr(Token("secret", 1.0))
