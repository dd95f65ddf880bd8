"""No link of any page leads nowhere."""

import re
from html import unescape

import pytest

from matoolkit.web.serving import Site
from matoolkit.web.site import create_site
from tests.stage import Stage
from tests.web.conftest import Visitor
from tests.web.everywhere import Everywhere
from tests.web.furnished import furnish

pytestmark = pytest.mark.on("sqlite")

_LINK = re.compile(r'(?:href|hx-get)="(/[^"#]*)"')


def test_every_link_on_every_page_leads_somewhere(visitor: Visitor, site: Site, stage: Stage) -> None:
    links: dict[str, str] = {}
    for path in Everywhere(stage, furnish(stage)).pages(create_site(site)):
        answer = visitor.get(path)
        if "text/html" in answer.headers["content-type"]:
            # A link without a query may be that of a form, which gives it one.
            forms = set(re.findall(r'<form[^>]*hx-get="([^"]+)"', answer.text))
            links |= {unescape(link): path for link in set(_LINK.findall(answer.text)) - forms}
    assert len(links) > 100
    nowhere = {link: path for link, path in links.items() if visitor.get(link).status_code >= 400}
    assert nowhere == {}
