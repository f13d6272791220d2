"""The screen of outstanding purchases."""

from __future__ import annotations

import pytest

from dashboard.forms import forms_of
from support.pages import main_of
from support.service import CHANNEL, CLIENT_ID, LiveServer


@pytest.fixture
def screen(live: LiveServer) -> str:
    """The URL of the screen, after the purchase of a product with a hostile name."""
    url = f"{live.url}/_emulator/ui/purchases"
    form = forms_of(url)["purchase"]
    answer = form.send(client_id=CLIENT_ID, channel_id=CHANNEL, user_id="U7", body__sku="<b>hat</b>").json()
    assert 201 == answer["status"]
    return url


def test_a_purchase_is_listed_with_its_product_and_buyer(screen: str):
    main = main_of(screen)

    assert '<td data-head="Product"><bdi>&lt;b&gt;hat&lt;/b&gt;</bdi></td>' in main
    assert '<td data-head="Buyer"><bdi>U7</bdi></td>' in main
    assert f"--client-id {CLIENT_ID} --channel {CHANNEL}" in main
    assert {"extcli bits validate", "extcli bits refund"} == {
        verb for verb in ("extcli bits validate", "extcli bits refund") if verb in main
    }


def test_purchases_are_filtered_by_channel(screen: str):
    assert "No purchases match." in main_of(f"{screen}?channel_id=other")
    assert "&lt;b&gt;hat&lt;/b&gt;" in main_of(f"{screen}?channel_id={CHANNEL}")
