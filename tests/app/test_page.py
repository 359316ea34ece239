"""The page of `text-infill serve`, as served and as used in a browser."""

import dataclasses
import html
import re
import shutil
import subprocess
import urllib.parse

import pytest
from serving_helper import Echo, ask, serving_

from text_infilling.app import server as serving
from text_infilling.app import server_protocol, server_request
from text_infilling.inference.results import Filled


def test_the_page_is_one_file_without_external_resources():
    with serving_(Echo()) as server:
        status, headers, body = ask(server, "GET", "/?text=a%20____")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    page = body.decode()
    assert "http:" not in page and "https:" not in page and "src=" not in page
    for name, most in (("num_results", server_request.MOST_RESULTS), ("max_words", server_request.MOST_WORDS)):
        assert re.search(f'id="{name}" [^>]*max="{most}"', page)


@pytest.fixture
def chromium():
    # Searched when the tests run, not at collection: `.ci/run` may still be installing it then.
    found = next(filter(None, map(shutil.which, ["chromium", "google-chrome"])), None)
    return found or pytest.skip("needs Chromium: apt-get install chromium")


def seen(url, tmp_path, chromium):
    """Returns the page as HTML after its scripts ran, with character references resolved."""
    line = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    line += ["--hide-scrollbars", "--virtual-time-budget=5000", url]
    return html.unescape(subprocess.run(line, capture_output=True, text=True, timeout=120, check=True).stdout)


def asking(server, text):
    """Returns the link that fills a text."""
    return f"{server.url}?{urllib.parse.urlencode({'text': text, 'go': 1})}"


class Fixed(Echo):
    """A stand-in with fixed results for a text with one blank: pairs of words and their log probabilities."""

    def __init__(self, *results):
        super().__init__()
        self.results = results

    def _filled(self, text, i, num_results):
        ways = []
        for words, log_probs in self.results:
            infill, total = " ".join(words), sum(log_probs)
            whole = text.replace("____", infill)
            ways.append(Filled(whole, [infill], total, [total], [list(log_probs)], [list(words)]))
        return dataclasses.replace(ways[0], alternatives=ways)


def test_a_link_with_go_fills_its_text(tmp_path, chromium):
    text = "<b>cats</b> like ____ , and ____!"
    with serving_(Echo()) as server:
        page = seen(asking(server, text), tmp_path, chromium)
    assert page.count('class="chip"') == 2 and page.count('class="fill"') == 2
    assert 'title="probability of each word: <b>cats</b> 61 %"' in page
    assert "<b>cats</b> like <b>cats</b> , and <b>cats</b>!" in page
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


def test_a_user_types_a_text_fills_it_and_picks_another_infill(tmp_path, chromium):
    with serving_(Echo(), serving.PAGE.read_bytes() + ACTIONS.encode()) as server:
        page = seen(server.url, tmp_path, chromium)
    filled = page[page.index('id="filled"') :].partition("</p>")[0]
    assert ">cats2</button>" in filled and 'title="probability of each word: cats2 8 %"' in filled
    assert filled.count("<button") == page.count('class="chip"') == 1 and 'role="menu"' not in page


OPEN_MENU = """
<script>
setTimeout(() => document.querySelector(".fill").click(), 2000);
</script>
"""


def with_menu(infiller, text, tmp_path, chromium):
    """Returns the page after the menu of the first infill was opened."""
    with serving_(infiller, serving.PAGE.read_bytes() + OPEN_MENU.encode()) as server:
        return seen(asking(server, text), tmp_path, chromium)


# Chromium windows are at least 500 pixels wide; a frame can be narrower.
IN_A_FRAME = """
<script>
if (window === top)
  document.body.innerHTML = `<iframe src="${location}" style="width: WIDTHpx; height: 800px; border: 0"></iframe>`;
else setTimeout(() => {
  document.querySelector(".fill").click();
  const shown = ["#model", "#warning", ".menu"].filter(name => document.querySelector(name).textContent.length > 90);
  top.document.body.dataset.seen = `${shown} ${innerWidth} ${document.documentElement.scrollWidth}`;
}, 2000);
</script>
"""


@pytest.mark.parametrize("width", [375, 320])
def test_long_names_and_words_fit_a_phone(width, tmp_path, chromium, monkeypatch):
    monkeypatch.setitem(server_protocol.HEADERS, "Content-Security-Policy", "default-src 'self' 'unsafe-inline'")
    infiller = Fixed((["w" * 90], [-1, -1]), (["a", "b"], [-1, -1, -1]))
    page = serving.PAGE.read_bytes() + IN_A_FRAME.replace("WIDTH", str(width)).encode()
    run = "runs/" + "yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1" * 2
    with serving_(infiller, page, run) as server:
        page = seen(asking(server, f"____ is {'x' * 90} {'y__y' * 90}"), tmp_path, chromium)
    assert f'data-seen="#model,#warning,.menu {width} {width}"' in page


def test_probabilities_are_shown_as_bars_and_whole_percentages(tmp_path, chromium):
    infiller = Fixed((["soup"], [-0.01, -0.02]), (["the", "soup"], [-0.7, -0.01, -0.03]), (["xylem"], [-60.0, -20.0]))
    page = with_menu(infiller, "the ____ was cold .", tmp_path, chromium)
    assert re.findall(r'title="(probability [^"]*)"', page) == ["probability of each word: soup 99 %, end 98 %"]
    best, half, least = "the most probable", "49 % as probable as the best", "less than 1 % as probable as the best"
    for place in ('role="menu"', 'id="sentences"'):
        part = page[page.index(place) :].partition("</ol>")[0]
        assert re.findall(r'aria-label="([^"]* probable[^"]*)"', part)[:3] == [best, half, least]
    assert not re.search(r"\d{4,} ?%|\d[.,]\d+ ?%|\de-\d", page.partition("<script>")[0])


def test_an_empty_infill_is_shown_as_a_mark_and_is_last_in_its_menu(tmp_path, chromium):
    infiller = Fixed(([], [-0.1]), (["soup"], [-1, -1]), (["fish"], [-2, -1]))
    page = with_menu(infiller, "the ____ was cold .", tmp_path, chromium)
    assert "(nothing)" not in page
    (button,) = re.findall(r'<button[^>]*class="fill"[^>]*></button>', page)
    assert 'title="no word, 90 %"' in button and 'aria-label="blank 1: no word, 90 %"' in button
    menu = page[page.index('role="menu"') :]
    assert re.findall(r"<span[^>]*>([^<]+)</span>", menu)[:3] == ["soup", "fish", "no word"]


def test_the_page_finds_the_same_blanks_as_the_tokenizer(tmp_path, chromium):
    text = "____ is ____n't, [blank]n’t, __ and __m__! un____able __x _ [MASK] [blank]s ____nt"
    with serving_(Echo()) as server:
        page = seen(asking(server, text).replace("&go=1", ""), tmp_path, chromium)
    chips = re.findall(r'<span class="chip"[^>]*>([^<]*)</span>', page)
    assert chips == ["____", "____", "[blank]", "__", "__m__"] and "5 blanks." in page


@pytest.mark.parametrize(
    ("text", "warning", "infills"),
    [
        ("the [MASK] was cold", "the text has no blank, but [MASK]: a blank is ____", 0),
        ("the soup was cold", "the text has no blank: a blank is ____", 0),
        ("the ____ was un____able", "the text has un____able, which is not a blank: a blank is ____", 1),
        ("the ____ was cold", "", 1),
    ],
)
def test_a_warning_explains_why_a_blank_is_not_filled(text, warning, infills, tmp_path, chromium):
    with serving_(Echo()) as server:
        page = seen(asking(server, text), tmp_path, chromium)
    hint = page[page.index('id="warning"') :].partition("</p>")[0].partition(">")[2]
    assert hint.startswith(warning) and bool(hint) == bool(warning) and "blank_token" not in hint
    assert page.count('class="fill"') == infills and ("8 ways to fill it" in page) == bool(infills)
