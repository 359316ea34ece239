"""The page: asked for, and used in a browser."""

import re
import shutil
import subprocess
import urllib.parse

import pytest
from serving_helper import Echo, ask, serving_

from text_infilling import serving


def test_the_page_is_one_file_that_needs_nothing_else():
    with serving_(Echo()) as server:
        status, headers, body = ask(server, "GET", "/?text=a%20____")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    page = body.decode()
    assert "http:" not in page and "https:" not in page and "src=" not in page
    for name, most in (("num_results", serving.MOST_RESULTS), ("max_words", serving.MOST_WORDS)):
        assert re.search(f'id="{name}" [^>]*max="{most}"', page)


@pytest.fixture
def chromium():
    # Looked for when the tests run, not when they are collected: `.ci/run` installs it meanwhile.
    found = next(filter(None, map(shutil.which, ["chromium", "google-chrome"])), None)
    return found or pytest.skip("needs Chromium: apt-get install chromium")


def seen(url, tmp_path, chromium):
    """The page as it is after its scripts ran."""
    line = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    line += ["--virtual-time-budget=5000", url]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_link_fills_its_text(tmp_path, chromium):
    text = "<b>cats</b> like ____ , and ____!"
    with serving_(Echo()) as server:
        page = seen(f"{server.url}?{urllib.parse.urlencode({'text': text, 'go': 1})}", tmp_path, chromium)
    assert page.count('class="chip"') == 2 and page.count('class="fill"') == 2
    assert 'title="probability 61 %"' in page
    assert "&lt;b&gt;cats&lt;/b&gt; like &lt;b&gt;cats&lt;/b&gt; , and &lt;b&gt;cats&lt;/b&gt;!" in page
    assert page.count('aria-pressed="') == 8


ACTIONS = """
<script>
$("text").value = "cats like ____ and no__thing";
$("text").dispatchEvent(new Event("input"));
$("go").click();
setTimeout(() => {
  document.querySelector(".fill").click();
  document.querySelectorAll("[role=menuitemradio]")[2].click();
}, 2000);
</script>
"""


def test_one_types_presses_the_button_and_picks_another_fill(tmp_path, chromium):
    with serving_(Echo(), serving.PAGE.read_bytes() + ACTIONS.encode()) as server:
        page = seen(server.url, tmp_path, chromium)
    filled = page[page.index('id="filled"') :].partition("</p>")[0]
    assert ">cats2</button>" in filled and 'title="probability 8.2 %"' in filled
    assert filled.count("<button") == page.count('class="chip"') == 1 and 'role="menu"' not in page
