"""Failures with one cause have one fingerprint, although they name different people."""

import pytest

from matoolkit.domain.causes import fingerprint_of

ALIKE = {
    "object ids": (
        "there is no group 4f0c1f5e-6f0e-4a57-9d6b-2f4f6f1f6a99",
        "there is no group 4F0C1F5E-0000-4a57-9d6b-2f4f6f1f6a99",
    ),
    "addresses": ("no mailbox for ann@contoso.com", "no mailbox for bob.o'hara@fabrikam.org"),
    "quoted values": ("Resource 'abc' does not exist", "Resource 'x y z' does not exist"),
    "keys with digits": ("user u17 is not there", "user emp0042 is not there"),
    "numbers": ("quota of 20 GB is used up", "quota of 49.5 GB is used up"),
}


@pytest.mark.parametrize("what", ALIKE)
def test_r9_names_ids_and_numbers_are_left_out(what: str) -> None:
    one, other = ALIKE[what]
    assert one != other
    assert fingerprint_of("Rejected", one) == fingerprint_of("Rejected", other)


def test_different_causes_stay_apart() -> None:
    found = {
        fingerprint_of("Rejected", "no licence is left"),
        fingerprint_of("ObjectMissing", "no licence is left"),
        fingerprint_of("Rejected", "no licence was left"),
        fingerprint_of("Rejected", "AADSTS50034: sign-in failed"),
        fingerprint_of("Rejected", "AADSTS50076: sign-in failed"),
        fingerprint_of("UnresolvedVariable", "variable 'A' cannot be resolved", "A"),
        fingerprint_of("UnresolvedVariable", "variable 'B' cannot be resolved", "B"),
    }
    assert len(found) == 7


def test_an_apostrophe_is_no_quotation() -> None:
    assert fingerprint_of(None, "the user's mailbox can't be moved") != fingerprint_of(None, "the user's mail can't go")


@pytest.mark.parametrize(
    "text", ["", " ", "half \ud800 of a character", "'" * 50_001, "a@" * 5000, "1" * 20_000, "'a" * 9000]
)
def test_any_text_has_a_fingerprint(text: str) -> None:
    assert len(fingerprint_of(None, text)) == 32
