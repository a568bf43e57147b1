"""The account: its time zone, ceilings, usage, keys, data, and its end."""

import datetime
import os
import re
import subprocess
import zipfile
import zoneinfo

from playwright.sync_api import expect

from conftest import BINARY, Owner, Platform, axe, shot
from test_assets import HOSTILE, asset, fits


def account(owner, view="", **options):
    page = owner.page(f"/account{view}", **options)
    expect(page.get_by_role("heading", level=1)).not_to_be_empty()
    return page


def test_a_new_time_zone_changes_every_time(owner):
    owner.call("PATCH", "/account", {"timezone": "Europe/Vienna"})
    one = asset(owner, owner.agent())
    saved = datetime.datetime.fromisoformat(owner.get(f"/assets/{one}")["created_at"])
    clock = lambda zone: saved.astimezone(zoneinfo.ZoneInfo(zone)).strftime("%H:%M")
    context = owner.context()
    page = owner.page(f"/assets/{one}", context=context)
    expect(page.locator("time.instant").first).to_contain_text(clock("Europe/Vienna"))
    other = owner.page("/account", context=context)
    other.get_by_label("Time zone").select_option("Asia/Kolkata")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_text("Saved.")).to_be_visible()
    assert owner.get("/account")["timezone"] == "Asia/Kolkata"
    # The page that changed it, after a walk without a reload.
    other.evaluate(f"location.hash = '#/assets/{one}'")
    expect(other.locator("time.instant").first).to_contain_text(clock("Asia/Kolkata"))
    other.locator("time.instant").first.hover()
    expect(other.get_by_role("tooltip").first).to_contain_text("Asia/Kolkata")
    other.evaluate("location.hash = '#/'")
    # The page of another tab, when it reads again.
    page.reload()
    expect(page.locator("time.instant").first).to_contain_text(clock("Asia/Kolkata"))


def test_a_slow_answer_about_the_account_shows_no_times_of_another_zone(owner):
    """The zone comes with the account. When all answers are late together, the first description of the page has it already."""
    owner.call("PATCH", "/account", {"timezone": "Asia/Tokyo"})
    one = asset(owner, owner.agent())
    saved = datetime.datetime.fromisoformat(owner.get(f"/assets/{one}")["created_at"])
    context = owner.context()
    page = context.new_page()
    held = []
    context.route("**/assets/**", lambda route: held.append(route))
    page.goto(f"{owner.platform.url}/#/assets/{one}")
    expect(page.get_by_role("status", name="Loading")).to_be_visible()
    for route in held:
        route.continue_()
    context.unroute("**/assets/**")
    expect(page.locator("time.instant").first).to_contain_text(saved.astimezone(zoneinfo.ZoneInfo("Asia/Tokyo")).strftime("%H:%M"))


def test_ceilings_and_alerts(owner):
    page = account(owner)
    page.get_by_label("A day may cost").fill("5")
    page.get_by_label("A month may cost").fill("99.50")
    page.get_by_role("button", name="Add an alert").click()
    page.get_by_label("Alert 1, in dollars").fill("20")
    page.get_by_role("button", name="Add another").click()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_label("Alert 2, in dollars").fill("50")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    stored = owner.get("/account")
    assert stored["budget"] == {"per_day_micros": 5_000_000, "per_month_micros": 99_500_000}
    assert [alert["month_micros"] for alert in stored["alerts"]] == [20_000_000, 50_000_000]
    page.get_by_label("A day may cost").fill("101")
    expect(page.get_by_text("At most $100.00.")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_label("A day may cost").fill("")
    page.get_by_role("button", name="Remove").first.click()
    page.get_by_role("button", name="Save").click()
    owner.wait(lambda: owner.get("/account")["budget"] == {"per_month_micros": 99_500_000})
    assert [alert["month_micros"] for alert in owner.get("/account")["alerts"]] == [50_000_000]


def test_two_tabs_change_the_account(owner):
    page = account(owner)
    page.get_by_label("A month may cost").fill("10")
    owner.call("PATCH", "/account", {"timezone": "Asia/Tokyo", "budget": {"per_month_micros": 30_000_000}})
    page.get_by_role("button", name="Save").click()
    notice = page.get_by_role("alert", name="Changed meanwhile")
    expect(notice).to_contain_text("Taken over, because you have not changed it: Time zone.")
    expect(notice.locator(".diff li.del")).to_contain_text("30")
    notice.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_label("A month may cost")).to_have_value("30")
    assert owner.get("/account")["budget"] == {"per_month_micros": 30_000_000}


def test_the_theme_is_chosen_and_kept(owner):
    page = account(owner, theme="light")
    background = lambda: page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    light = background()
    page.get_by_label("Dark").check()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert background() != light
    page.reload()
    expect(page.get_by_label("Dark")).to_be_checked()
    assert background() != light
    page.get_by_label("As the system").check()
    assert background() == light


def test_the_usage_of_a_month_and_a_month_without_any(owner):
    owner.call("PATCH", "/account", {"timezone": "Europe/Vienna"})
    agent = owner.agent(HOSTILE)
    owner.run(owner.action(agent, HOSTILE))
    page = account(owner, "/usage")
    month = owner.get(f"/usage?month={datetime.datetime.now(zoneinfo.ZoneInfo('Europe/Vienna')):%Y-%m}")["month"]
    calls = month["total"]["calls"]
    assert calls > 0
    expect(page.locator(".verdict")).to_contain_text(f"{calls} call")
    expect(page.locator(".chart rect")).to_have_count(1)
    expect(page.get_by_role("img", name=re.compile("^Calls by day"))).to_be_visible()
    for name in ("By agent", "By action"):
        expect(page.get_by_role("table", name=name).get_by_role("link", name=HOSTILE)).to_be_visible()
    expect(page.get_by_role("table", name="By model")).to_contain_text("demo/demo")
    day = page.get_by_role("region", name="Days with calls").get_by_role("row").nth(1)
    expect(day).to_contain_text(str(calls))
    page.get_by_role("link", name="Tokens", exact=True).click()
    expect(page.get_by_role("img", name=re.compile("^Tokens by day"))).to_be_visible()
    page.get_by_role("link", name=re.compile("^←")).click()
    expect(page.get_by_text(re.compile("^No model was called in"))).to_be_visible()
    expect(page.locator(".chart")).to_have_count(0)
    page.get_by_role("link", name="Show this month").click()
    expect(page.locator(".chart rect")).to_have_count(1)
    # A month that is not one, and one that is still to come, are this month.
    for wrong in ("2026-13", "9999-01", "x"):
        page.goto(f"{owner.platform.url}/#/account/usage?month={wrong}")
        expect(page.locator(".chart rect")).to_have_count(1)


def test_a_key_is_shown_once_and_revoked(owner):
    page = account(owner, "/keys")
    form = page.get_by_role("form", name="New API key")
    form.get_by_label("Name").fill(HOSTILE)
    form.get_by_label("Read", exact=False).first.check()
    form.get_by_label("Days until it ends").fill("400")
    expect(form.get_by_role("button", name="Make the key")).to_be_disabled()
    form.get_by_label("Days until it ends").fill("7")
    form.get_by_role("button", name="Make the key").click()
    secret = page.locator("code.secret")
    expect(secret).to_have_text(re.compile("^llk_"))
    text = secret.text_content()
    key = owner.get("/account/api-keys")["data"][0]
    assert (key["name"], key["scopes"]) == (HOSTILE, ["read"])
    days = datetime.datetime.fromisoformat(key["expires_at"]) - datetime.datetime.fromisoformat(key["created_at"])
    assert days == datetime.timedelta(days=7)
    axe(page)
    page.reload()
    expect(page.locator(".rows > li", has_text=HOSTILE)).to_be_visible()
    expect(secret).to_have_count(0)
    assert text not in page.content()
    assert text not in page.evaluate("JSON.stringify([{ ...sessionStorage }, { ...localStorage }])")
    page.get_by_role("button", name="Revoke…").click()
    page.get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_text("No key yet.")).to_be_visible()
    assert owner.get("/account/api-keys")["data"] == []
    assert page.evaluate("window.owned") is None


def test_secrets_of_calls(owner):
    page = account(owner, "/keys")
    form = page.get_by_role("form", name="A secret of calls")
    form.get_by_label("Name of the secret").fill("github")
    form.get_by_label("Value").fill("ghp_0123456789-x9Qw")
    form.get_by_label("Hosts").fill("API.github.com, uploads.github.com")
    form.get_by_role("button", name="Store the secret").click()
    stored = page.get_by_role("region", name="Secrets of calls").locator(".rows > li")
    expect(stored).to_contain_text("only to api.github.com, uploads.github.com")
    assert "ghp_0123456789" not in page.content()
    expect(form.get_by_label("Value")).to_have_value("")
    stored.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(stored).to_have_count(0)
    assert owner.get("/account/secrets")["data"] == []


def test_own_keys_and_servers(owner):
    page = account(owner, "/keys")
    form = page.get_by_role("form", name="Your own key of a provider")
    form.get_by_label("Provider").select_option("OpenAI")
    form.get_by_label("Key").fill("sk-0123456789abcdef-x9Qw")
    form.get_by_role("button", name="Store the key").click()
    stored = page.get_by_role("region", name="Your own keys of model providers").locator(".rows > li")
    expect(stored).to_contain_text("x9Qw")
    assert "sk-0123456789" not in page.content()
    expect(form.get_by_label("Key")).to_have_value("")
    stored.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(stored).to_have_count(0)
    assert owner.get("/account/provider-keys")["data"] == []

    page.get_by_text("Add or replace a server").click()
    server = page.get_by_role("form", name="A model server")
    server.get_by_label("Name of the server").fill("router")
    server.get_by_label("Base address").fill("https://router.example.org/v1")
    server.get_by_role("textbox", name="Its models").fill("deep z-ai/glm-5\nnonsense")
    expect(server.get_by_text("“nonsense” is not a kind and a model.")).to_be_visible()
    server.get_by_role("textbox", name="Its models").fill("deep: z-ai/glm-5")
    server.get_by_label("Dollars for a million tokens").check()
    server.get_by_label("Read", exact=True).fill("0.60")
    server.get_by_label("Written").fill("2.20")
    server.get_by_role("button", name="Store the server").click()
    rows = page.get_by_role("region", name="Your own model servers").locator(".rows > li")
    expect(rows).to_contain_text("https://router.example.org/v1")
    kept = owner.get("/account/servers")["data"][0]
    assert kept["models"] == {"deep": ["z-ai/glm-5"]}
    assert (kept["prices"]["*"]["input"], kept["prices"]["*"]["output"]) == (600_000, 2_200_000)
    # The tier that it serves names it, with its price.
    expect(page.get_by_role("row", name=re.compile("^Deep"))).to_contain_text("router/z-ai/glm-5")
    expect(page.get_by_role("row", name=re.compile("^Deep"))).to_contain_text("$0.60 for a million tokens that it reads")
    rows.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(rows).to_have_count(0)


def test_models_are_chosen(owner):
    page = account(owner, "/keys")
    expect(page.get_by_role("row", name=re.compile("^Standard"))).to_contain_text("The tier of the agent decides.")
    page.get_by_label("Model of all agents").select_option("demo/demo")
    expect(page.get_by_role("row", name=re.compile("^Standard"))).to_contain_text("You prefer this model.")
    assert owner.get("/models")["settings"]["preferred"] == "demo/demo"
    page.get_by_label("Model of all agents").select_option("")
    expect(page.get_by_role("row", name=re.compile("^Standard"))).to_contain_text("The tier of the agent decides.")


def test_a_refused_choice_of_a_model_is_not_shown_as_chosen(owner):
    page = account(owner, "/keys")
    page.route("**/models/settings", lambda route: route.fulfill(status=400, content_type="application/problem+json", body='{"status": 400, "code": "invalid_input", "detail": "the model has no price"}'))
    page.get_by_label("Model of all agents").select_option("demo/demo")
    expect(page.get_by_role("region", name="Models in use")).to_contain_text("the model has no price")
    expect(page.get_by_label("Model of all agents")).to_have_value("")
    assert owner.get("/models")["settings"].get("preferred") is None


def test_the_account_is_exported(owner):
    asset(owner, owner.agent())
    page = account(owner, "/data")
    page.get_by_role("button", name="Export the account").click()
    ready = page.get_by_role("link", name="Download the archive")
    expect(ready).to_be_visible()
    assert re.match(r"http://127\.0\.0\.1:\d+/", ready.get_attribute("href"))
    assert ready.get_attribute("rel") == "noreferrer"
    # A reload still knows the export.
    page.reload()
    expect(page.get_by_role("link", name="Download the archive")).to_be_visible()
    axe(page)


def test_an_archive_is_announced_and_sent(owner, tmp_path):
    """The import itself begins within a minute; tests of the platform watch it. Here the archive must have arrived, byte by byte."""
    archive = tmp_path / "it's an archive.zip"
    comment = b"an archive of a test"
    archive.write_bytes(b"PK\x05\x06" + bytes(16) + len(comment).to_bytes(2, "little") + comment)
    page = account(owner, "/data")
    page.get_by_label("Archive of an export").set_input_files(archive)
    page.get_by_role("button", name="Import this archive").click()
    expect(page.get_by_role("region", name="Import")).to_contain_text("It waits for the archive.")
    assert owner.get("/account/import")["bytes"] == archive.stat().st_size
    command = page.get_by_role("region", name="Command that sends the archive")
    if owner.platform.sources:
        # The pages come from another address than the bucket, so the page shows a command.
        expect(command).to_be_visible()
        axe(page)
        subprocess.run(["bash", "-c", command.text_content()], cwd=tmp_path, check=True, timeout=30)
    else:
        expect(command).to_have_count(0)
    bucket = owner.platform.folder / "data" / "bucket" / "objects"
    owner.wait(lambda: any(archive.read_bytes() in one.read_bytes() for one in bucket.iterdir() if one.is_file()))


def test_the_account_is_deleted_and_the_receipt_is_read(owner):
    one = asset(owner, owner.agent())
    page = account(owner, "/data")
    page.get_by_role("button", name="Delete the account…").click()
    final = page.get_by_role("button", name="Delete everything")
    expect(final).to_be_disabled()
    page.get_by_label("Type “delete” to confirm").fill("delet")
    expect(final).to_be_disabled()
    assert owner.get(f"/assets/{one}")
    page.get_by_label("Type “delete” to confirm").fill("delete")
    final.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Receipt of a deletion")
    receipt_id = re.search(r"rcp_[0-9a-f]{32}", page.url)[0]
    receipt = owner.get(f"/receipts/{receipt_id}")
    assert receipt["state"] in ("removing", "waiting", "done")
    expect(page.locator("code", has_text=receipt_id)).to_be_visible()
    expect(page.get_by_role("region", name="What was removed")).to_contain_text("Assets")
    axe(page)
    shot(page, "receipt-light")
    fits(page)
    # The account itself leads to the receipt, also after a reload.
    page.goto(f"{owner.platform.url}/#/account")
    page.get_by_role("link", name="Read the receipt").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Receipt of a deletion")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Receipt of a deletion")
    # It says when a new account can begin.
    expect(page.get_by_text("Until then, this account takes no calls")).to_be_visible()
    # So does every other page: none of them is a dead end.
    for place in ("/", "/agents", "/notices"):
        page.goto(f"{owner.platform.url}/#{place}")
        expect(page.get_by_text("You can start again with an empty account when the deletion has ended")).to_be_visible()
        page.get_by_role("link", name="Read the receipt").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Receipt of a deletion")
    # When it has ended, the receipt leads to the empty account.
    page.route("**/receipts/*", lambda route: route.fulfill(json={**receipt, "state": "done", "finished_at": receipt["confirms_at"]}))
    page.goto(f"{owner.platform.url}/#/account/{receipt_id}")
    page.reload()
    expect(page.get_by_role("link", name="with an empty account")).to_have_attribute("href", "#/")
    narrow = owner.page(f"/account/{receipt_id}", width=320, theme="dark")
    expect(narrow.get_by_role("heading", level=1)).to_have_text("Receipt of a deletion")
    fits(narrow)
    axe(narrow)
    shot(narrow, "receipt-dark-320")


def test_signing_out_forgets_the_key(tmp_path, browser):
    environment = {**os.environ, "LAMPLIGHTER_DATA": str(tmp_path / "data")}
    key = subprocess.run([BINARY, "api-key"], env=environment, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    platform = Platform(tmp_path, auth="on")
    owner = Owner(platform, browser, key)
    try:
        page = account(owner)
        expect(page.get_by_label("Time zone")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Time zone")).to_have_count(0)
        assert key not in page.evaluate("JSON.stringify([{ ...sessionStorage }, { ...localStorage }])")
        assert key not in page.content()
    finally:
        owner.close()
        platform.end()


def test_narrow_pages_both_themes_and_axe(owner):
    agent = owner.agent("W" * 190)
    owner.run(owner.action(agent, HOSTILE + "V" * 100))
    owner.post("/account/api-keys", {"name": "K" * 100})
    owner.call("PUT", "/account/servers/router", {"url": "https://router.example.org/" + "p" * 300, "models": {"deep": ["m" * 100]}, "prices": {"*": "free"}})
    owner.call("PATCH", "/account", {"alerts": [{"month_micros": 20_000_000}]})
    for theme, width in (("light", 1280), ("dark", 320)):
        for view in ("", "/usage", "/keys", "/data"):
            page = account(owner, view, theme=theme, width=width)
            expect(page.locator(".account-page > *").first).to_be_visible()
            for summary in page.locator("summary").all():
                summary.click()
            fits(page)
            axe(page)
            shot(page, f"account{view.replace('/', '-')}-{theme}-{width}")
            assert page.evaluate("window.owned") is None


def test_the_memory_is_downloaded_as_files_that_people_read(owner):
    owner.call("PUT", "/memory/long-term", {"markdown": "## About me\n- Lives in Graz\n"})
    page = owner.page("/account/data")
    section = page.get_by_role("region", name="Export", exact=True)
    with page.expect_download() as begun:
        section.get_by_role("button", name="Download the memory").click()
    assert begun.value.suggested_filename == "memory.zip"
    with zipfile.ZipFile(begun.value.path()) as archive:
        assert "Lives in Graz" in archive.read("MEMORY.md").decode()
    axe(page)
