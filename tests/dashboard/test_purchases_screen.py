"""The screen of outstanding purchases."""

from __future__ import annotations

from dashboard.html_pages import forms_of
from support.pages import main_of
from support.service import CHANNEL, CLIENT_ID, LiveServer


def test_a_purchase_is_listed_with_its_product_and_buyer_and_filtered_by_channel(live: LiveServer):
    screen = f"{live.url}/_emulator/ui/purchases"
    form = forms_of(screen)["purchase"]
    answer = form.send(client_id=CLIENT_ID, channel_id=CHANNEL, user_id="U7", body__sku="<b>hat</b>").json()
    main = main_of(f"{screen}?channel_id={CHANNEL}")

    assert 201 == answer["status"]
    assert '<td data-head="Product"><bdi>&lt;b&gt;hat&lt;/b&gt;</bdi></td>' in main
    assert '<td data-head="Buyer"><bdi>U7</bdi></td>' in main
    assert f"--client-id {CLIENT_ID} --channel {CHANNEL}" in main
    assert [True, True] == [f"extcli bits {verb}" in main for verb in ("validate", "refund")]
    assert "No purchases match." in main_of(f"{screen}?channel_id=other")
