"""How people get in: a pasted key, and an OpenID Connect provider, which a part of the test plays."""

import base64
import hashlib
import json
import os
import re
import subprocess
import urllib.parse

import pytest
from playwright.sync_api import expect

from conftest import BINARY, Owner, Platform, axe, shot

PROVIDER = "https://id.example"
SIGN_IN = {
    "LAMPLIGHTER_SIGN_IN_CLIENT_ID": "console",
    "LAMPLIGHTER_SIGN_IN_AUTHORIZE_URL": f"{PROVIDER}/authorize",
    "LAMPLIGHTER_SIGN_IN_TOKEN_URL": f"{PROVIDER}/token",
    "LAMPLIGHTER_SIGN_IN_SCOPE": "openid profile",
    # The platform accepts API keys without a provider, so the provider of the test gives one as access token.
    "LAMPLIGHTER_SIGN_IN_TOKEN": "access_token",
}

pytestmark = pytest.mark.skipif(bool(os.environ.get("CONSOLE_SOURCES")), reason="the sources are served without the platform's settings")


@pytest.fixture
def key(tmp_path):
    made = subprocess.run([str(BINARY), "api-key"], cwd=tmp_path, env={"PATH": os.environ["PATH"], "LAMPLIGHTER_DATA": str(tmp_path / "data")}, capture_output=True, text=True, timeout=60, check=True)
    return re.search(r"llk_\S+", made.stdout)[0]


@pytest.fixture
def guarded(tmp_path, key):
    platform = Platform(tmp_path, auth="on", environment=SIGN_IN)
    yield platform
    platform.end()


@pytest.fixture
def stranger(guarded, browser):
    """Somebody whose pages have no credentials."""
    person = Owner(guarded, browser)
    yield person
    person.close()


def signed(claims):
    encode = lambda part: base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
    return f"{encode({'alg': 'none'})}.{encode(claims)}.x"


class Provider:
    """The provider's two addresses."""

    def __init__(self, context, key):
        self.key = key
        self.asked = None
        self.exchanged = []
        self.nonce = None
        context.route(f"{PROVIDER}/authorize*", self.authorize)
        context.route(f"{PROVIDER}/token", self.token)

    def authorize(self, route):
        self.asked = {name: values[0] for name, values in urllib.parse.parse_qs(urllib.parse.urlsplit(route.request.url).query).items()}
        back = f"{self.asked['redirect_uri']}?code=code-1&state={self.asked['state']}"
        route.fulfill(status=302, headers={"location": back})

    def token(self, route):
        sent = {name: values[0] for name, values in urllib.parse.parse_qs(route.request.post_data).items()}
        self.exchanged.append(sent)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        assert challenge == self.asked["code_challenge"]
        id_token = signed({"nonce": self.nonce or self.asked["nonce"], "sub": "ada"})
        route.fulfill(json={"access_token": self.key, "id_token": id_token}, headers={"access-control-allow-origin": "*"})


def test_a_key_is_pasted(stranger, key):
    context = stranger.context()
    page = stranger.page("/agents", context=context)
    field = page.get_by_label("Or paste an API key")
    expect(page.get_by_role("heading", name="Come in")).to_be_visible()
    axe(page)
    shot(page, "come-in")
    field.fill("llk_wrong")
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_role("alert")).to_contain_text("The platform does not accept this key.")
    field.fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    assert key not in page.url
    # Another tab does not know it.
    other = stranger.page("/agents", context=context)
    expect(other.get_by_role("heading", name="Come in")).to_be_visible()
    other.get_by_label("Or paste an API key").fill(key)
    other.get_by_label("Remember it on this device").check()
    other.get_by_role("button", name="Enter").click()
    expect(other.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    third = stranger.page("/agents", context=context)
    expect(third.get_by_role("heading", name="Agents", level=1)).to_be_visible()


def test_a_revoked_key_leads_back_to_the_entrance(stranger, key):
    stranger.token = key
    made = stranger.post("/account/api-keys", {"name": "Tablet", "scopes": ["read"]})
    stranger.token = made["api_key"]
    page = stranger.page("/agents")
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    stranger.token = key
    stranger.call("DELETE", f"/account/api-keys/{made['key_id']}")
    page.evaluate("location.hash = '#/assets'")
    expect(page.get_by_role("heading", name="Come in")).to_be_visible()


def test_sign_in_with_a_provider(stranger, guarded, key):
    context = stranger.context()
    provider = Provider(context, key)
    page = stranger.page("/assets", context=context)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Assets", level=1)).to_be_visible()
    assert page.url == f"{guarded.url}/#/assets"
    assert provider.asked["response_type"] == "code" and provider.asked["code_challenge_method"] == "S256"
    assert provider.asked["scope"] == "openid profile" and provider.asked["client_id"] == "console"
    assert [sent["code"] for sent in provider.exchanged] == ["code-1"]
    # The code works once, and a reload does not send it again.
    page.reload()
    expect(page.get_by_role("heading", name="Assets", level=1)).to_be_visible()
    assert len(provider.exchanged) == 1


def test_an_answer_that_was_not_asked_for_is_refused(stranger, guarded, key):
    context = stranger.context()
    provider = Provider(context, key)
    page = context.new_page()
    page.goto(f"{guarded.url}/?code=stolen&state=unknown")
    expect(page.get_by_role("heading", name="Come in")).to_be_visible()
    expect(page.get_by_text("This sign-in was not begun here.")).to_be_visible()
    assert page.url.rstrip("#/") == guarded.url and provider.exchanged == []
    # A token of another sign-in.
    provider.nonce = "of-somebody-else"
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("does not belong to this sign-in")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('lamplighter.token')") is None
