"""How the API may be served, with and without sign-in."""

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import InvalidSettings, SignInRequired
from matoolkit.hosting.api import sign_in_for
from matoolkit.settings import Settings, load_settings

TENANT, APP = "11111111-2222-3333-4444-555555555555", "99999999-8888-7777-6666-555555555555"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.4", "example.com", ""])
def test_without_entra_only_this_machine_is_served(host: str, clock: VirtualClock) -> None:
    with pytest.raises(SignInRequired, match="loopback"):
        sign_in_for(Settings(), host, clock)
    sign_in_for(Settings(entra_tenant_id=TENANT, entra_client_id=APP), host, clock)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_a_loopback_address_may_be_served_without_entra(host: str, clock: VirtualClock) -> None:
    sign_in_for(Settings(), host, clock)


def test_half_of_the_entra_settings_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="together"):
        load_settings(Settings, {"MATOOLKIT_ENTRA_TENANT_ID": TENANT})
