"""Rule W3: an id is one segment of a path, whatever is in it, and never empty."""

from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.worker.clients.failures import InvalidIdentifier
from matoolkit.worker.clients.identifiers import exchange_identity, object_id, path, segment, user_key

GUID = "11111111-aaaa-4bbb-8ccc-000000000001"
NASTY = [
    "a?b",
    "a/b",
    "a#b",
    "a b",
    "a%2Fb",
    "../groups",
    "..;/x",
    "a/../../groups/b",
    "a\\b",
    "$ref",
    "a&b=c",
    "o'brien@contoso.example",
    "jane_old.example#EXT#@contoso.example",
    "żółć@contoso.example",
    "人@contoso.example",
]


@pytest.mark.parametrize("identifier", NASTY)
def test_w3_a_nasty_id_is_one_segment_and_the_rest_of_the_path_stays(identifier: str) -> None:
    built = path("/v1.0/groups/{}/members/{}/$ref", GUID, identifier)
    sent = httpx.Request("DELETE", f"https://graph.example{built}").url
    parts = sent.raw_path.decode().split("/")
    assert len(parts) == 7
    assert unquote(parts[5]) == identifier
    assert parts[6] == "$ref"
    assert not sent.query
    assert not sent.fragment


@given(st.text(min_size=1, max_size=40))
def test_w3_whatever_is_in_an_id_it_is_one_segment_or_refused(identifier: str) -> None:
    try:
        encoded = segment(identifier)
    except InvalidIdentifier:
        return
    parts = httpx.URL(f"https://graph.example/users/{encoded}/end").raw_path.decode().split("/")
    assert [parts[0], parts[1], unquote(parts[2]), parts[3]] == ["", "users", identifier, "end"]


@pytest.mark.parametrize("identifier", ["", " ", "\t\n", ".", "..", "a\x00b", "a\r\nb", "\u202ea"])
def test_w3_what_cannot_be_a_segment_is_refused(identifier: str) -> None:
    with pytest.raises(InvalidIdentifier):
        segment(identifier)


@pytest.mark.parametrize("identifier", [GUID.upper(), f" {GUID} "])
def test_object_ids_are_guids_written_one_way(identifier: str) -> None:
    assert object_id(identifier, "GroupId") == GUID
    assert user_key(identifier, "UserId") == GUID


@pytest.mark.parametrize("identifier", ["", "staff", "me", f"{GUID}/members", f"{GUID}?x", "{" + GUID + "}", "a@b.c"])
def test_what_is_no_object_id_is_refused_by_the_parameters_name(identifier: str) -> None:
    with pytest.raises(InvalidIdentifier, match=r"^GroupId has to be an object id"):
        object_id(identifier, "GroupId")


@pytest.mark.parametrize("upn", ["jane@contoso.example", "o'brien@contoso.example", NASTY[-3], NASTY[-2]])
def test_users_may_be_called_by_their_upn(upn: str) -> None:
    assert user_key(upn, "UserId") == upn


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        "me",
        "$count",
        "delta",
        "a/b@c.d",
        "a?b@c.d",
        "a b@c.d",
        "a@b/../c",
        "a@b@c",
        "a\\b@c",
        "%2e%2e@c",
        "$a@b.c",
        "a" * 320 + "@contoso.example",
        "a\x00@b.c",
        "a@b#c",
    ],
)
def test_what_is_neither_an_id_nor_a_upn_is_refused(key: str) -> None:
    with pytest.raises(InvalidIdentifier, match=r"^UserId has to be"):
        user_key(key, "UserId")


@pytest.mark.parametrize("identity", ["", "  ", "*", "jane*", "a\nb", "x" * 400])
def test_an_identity_for_exchange_stands_for_one(identity: str) -> None:
    with pytest.raises(InvalidIdentifier, match=r"^Identity has to stand for one recipient"):
        exchange_identity(identity, "Identity")
