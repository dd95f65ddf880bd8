"""Where somebody goes after signing in: never to another site."""

import pytest

from matoolkit.web.returning import place_here


@pytest.mark.parametrize(
    "wanted",
    [
        "/",
        "/batches",
        "/batches/3/members/ann%40contoso.example?step=2",
        "/batches?runbook=a%2Fb&status=x%20y",
        "/batches?back=https%3A%2F%2Fcontoso.example",
        "/signing-orders",
    ],
)
def test_a_page_of_ours_is_gone_to(wanted: str) -> None:
    assert place_here(wanted) == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "batches",
        "https://evil.example",
        "https:/evil.example",
        "javascript:alert(1)",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/a\\b",
        "/\t/evil.example",
        "\t//evil.example",
        " //evil.example",
        "/\n/evil.example",
        "/a\r\nSet-Cookie: x=1",
        "/\x00/evil.example",
        "/\x85/evil.example",
        "/%2Fevil.example",
        "/%2fevil.example",
        "/%5Cevil.example",
        "/%252Fevil.example",
        "/%255cevil.example",
        "/%25252525252Fevil.example",
        "%2F%2Fevil.example",
        "/" + "x" * 1000,
        "/signin",
        "/signin?to=/signin",
        "/signin/done?code=1",
        "/signout/everywhere",
        "/signed-out",
    ],
)
def test_anything_else_leads_to_the_first_page(wanted: str) -> None:
    assert place_here(wanted) == "/"
