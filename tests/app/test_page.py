"""The page of `text-infill serve`: as served, and as one Chromium uses it in `page_driver.js`."""

import html
import json
import re
import subprocess
from pathlib import Path

import pytest
from serving_helper import Echo, ask, serving_

from text_infilling.app import server as serving
from text_infilling.app import server_protocol, server_request
from text_infilling.inference.results import Filled
from text_infilling.runs.learned import Learned
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary

DRIVER = Path(__file__).with_name("page_driver.js")
LONG_RUN = "runs/" + "yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1" * 2
LEARNED = Learned.of(
    {"corpus": "yelp", "masking": "fixed", "blanks": 1, "mask_rate": 0.5},
    Tokenizer(lower=True),
    Vocabulary("the soup was cold fish is and here . , i place this good".split()),
)
# For each text, its results: the infills of its blanks, and the log probabilities of their words and ends.
FIXED = {
    "The ____ was\n  ____ here.": [(["soup", "cold"], [[-0.1, -0.1]] * 2), (["fish", "hot"], [[-1, -1], [-2, -2]])],
    "The soup was\n  ____ here.": [
        (["cold"], [[-0.1, -0.1]]), ([""], [[-0.05]]), (["served"], [[-0.5, -0.5]]), (["xylem"], [[-60, -20]]),
    ],
    "The ____ was\n  served here.": [(["tea"], [[-0.2, -0.2]]), (["bread"], [[-0.4, -0.3]])],
    "the ____ was cold .": [([""], [[-0.1]]), (["the soup"], [[-0.7, -0.01, -0.03]]), (["xylem"], [[-60.0, -20.0]])],
    "שלום ____ עולם": [(["יפה"], [[-1, -1]])],
}  # fmt: skip


class Fixed(Echo):
    """A stand-in with the results of `FIXED`; it fills other texts as `Echo`, and keeps the last options."""

    def __init__(self):
        super().__init__()
        self.options = {}

    def fill(self, texts, **options):
        self.options[texts[0] if isinstance(texts, list) else texts] = options
        return super().fill(texts, **options)

    def _filled(self, text, i, num_results):
        if text not in FIXED:
            return super()._filled(text, i, num_results)
        ways = []
        for fills, tokens in FIXED[text]:
            whole = text
            for infill in fills:
                whole = whole.replace("____", infill, 1) if infill else re.sub(" *____", "", whole, count=1)
            sums = [sum(each) for each in tokens]
            ways.append(Filled(whole, fills, sum(sums), sums, tokens, [infill.split() for infill in fills]))
        return Filled(**{**vars(ways[0]), "alternatives": ways})


@pytest.fixture(scope="module")
def seen(chromium, tmp_path_factory):
    """What the driver saw in one session of the browser; `seen["options"]` are those that the model got by text."""
    infiller, page = Fixed(), serving.web_page() + b"<script>" + DRIVER.read_bytes() + b"</script>"
    phone = b'<script>if (window.name === "phone") matchMedia = () => ({ matches: true });</script>'
    page = page.replace(b"<body>", b"<body>" + phone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(server_protocol.HEADERS, "Content-Security-Policy", "default-src 'self' 'unsafe-inline'")
        with serving_(infiller, page, LONG_RUN, LEARNED) as server:
            line = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--hide-scrollbars"]
            line += [
                f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
                "--virtual-time-budget=60000",
                server.url,
            ]
            dom = subprocess.run(line, capture_output=True, text=True, timeout=200, check=True).stdout
    found = re.search(r'data-seen="([^"]*)"', dom)
    assert found, dom[-2000:]
    return json.loads(html.unescape(found[1])) | {"options": infiller.options}


# As served


def test_the_page_is_one_file_without_external_resources():
    with serving_(Echo()) as server:
        status, headers, body = ask(server, "GET", "/?text=a%20____")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert "img-src data:" in headers["Content-Security-Policy"]
    page = body.decode()
    assert "http:" not in page and "https:" not in page and "src=" not in page and "page.css" not in page
    assert '<link rel="icon" href="data:image/svg+xml,' in page
    numbers = {"num_results": "RESULTS", "min_words": "WORDS", "max_words": "WORDS"}
    for name, most in numbers.items():
        assert re.search(f'id="{name}" [^>]*max="{getattr(server_request, f"MOST_{most}")}"', page)
    for name in re.findall(r'<(?:input|select|textarea) id="(\w+)"', page):
        assert f'<label for="{name}">' in page


def luminance(colour):
    digits = colour.strip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_borders_and_texts_have_enough_contrast_in_light_and_dark():
    schemes = [dict(re.findall(r"--([\w-]+): (#\w+)", part)) for part in re.findall(
        r":root \{(.*?)\}", serving.web_page().decode(), re.DOTALL)]  # fmt: skip
    assert len(schemes) == 2
    for colours in schemes:
        for ground in ("paper", "card"):
            assert all(contrast(colours[name], colours[ground]) >= 3 for name in ("line", "edge"))
            assert all(contrast(colours[name], colours[ground]) >= 4.5 for name in ("ink", "quiet", "bad"))
        assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
        assert contrast(colours["ink"], colours["chip"]) >= 4.5


# In a browser


def test_no_script_fails(seen):
    assert seen["errors"] == []


def test_a_link_with_go_fills_its_text_and_html_stays_text(seen):
    assert seen["html"] == {"chips": 2, "fills": ["<b>cats</b>"] * 2, "text": "<b>cats</b> like <b>cats</b> , and "
                            "<b>cats</b>!", "entries": 8}  # fmt: skip


def test_the_menu_of_a_blank_has_its_infills_given_the_other_blanks(seen):
    start = seen["choice"]["start"]
    assert start["text"] == "The soup was\n  cold here." and start["refill"] is None
    assert seen["choice"]["menu"] == ["cold", "served", "xylem", "no word"]  # most confident first, an empty one last
    assert seen["choice"]["checked"] == ["cold"] and seen["choice"]["focused"] == "cold"
    options = seen["options"]["The soup was\n  ____ here."]
    assert options["num_results"] == 8 and "temperature" not in options


def test_a_choice_changes_one_blank_and_later_ones_keep_it(seen):
    first, second = seen["choice"]["first"], seen["choice"]["second"]
    assert first["text"] == "The soup was\n  served here." and first["picked"] == ["served"]
    assert first["said"] == "Blank 2 is now served; the other blanks stay. Now: The soup was\n  served here."
    assert first["refill"] == "Fill blank 1 again around your choices"
    assert (
        second["text"] == "The tea was\n  served here." and second["picked"] == ["served"] and second["refill"] is None
    )


def test_a_whole_text_says_before_which_blanks_it_changes(seen):
    assert seen["choice"]["start"]["changes"] == ["", "changes blanks 1 and 2"]
    assert seen["choice"]["first"]["changes"] == ["changes blank 2, also your choice in blank 2"] + [
        "changes blanks 1 and 2, also your choice in blank 2"
    ]
    assert seen["choice"]["whole"]["text"] == "The fish was\n  hot here."
    assert seen["choice"]["whole"]["said"].startswith(
        "Changed blanks 1 and 2, also your choice in blanks 1 and 2. Now: The fish"
    )


def test_the_list_of_whole_texts_marks_infills_and_keeps_line_breaks(seen):
    assert seen["choice"]["list"] == [["The soup was\n  cold here.", ["soup", "cold"], "pre-wrap"],
                                      ["The fish was\n  hot here.", ["fish", "hot"], "pre-wrap"]]  # fmt: skip


def test_an_empty_infill_is_a_mark_that_keeps_the_spacing(seen):
    assert seen["empty"]["fills"] == ["∅"] and seen["empty"]["label"] == "blank 1: no word, sure: 90 % per word"
    assert seen["empty"]["copied"] == "the was cold ." and seen["empty"]["gap"] > 3


def test_confidence_is_one_measure_with_a_legend_and_exact_values(seen):
    assert seen["empty"]["bars"] == ["sure: 90 % per word", "sure: 78 % per word", "guess: below 0.1 % per word"]
    assert seen["choice"]["start"]["titles"][0] == "sure: 90 % per word (soup 90 %, end 90 %)"
    assert [each.split(":")[0] for each in seen["empty"]["legend"]] == ["sure", "likely", "unsure", "guess"]
    assert not re.search(r"\d{4,} ?%|\d\.\d\d+ ?%|\de-\d", json.dumps(seen["empty"]))


def test_links_keep_all_options(seen):
    asked = {"limits": [{"min_words": 1, "max_words": 2}], "num_results": 3, "order": "confident", "temperature": 0.5}
    assert seen["options"]["I like ____ ."].items() >= (asked | {"seed": 5}).items()
    link = "?text=I+like+____+.&num_results=3&min_words=1&max_words=2&order=confident&temperature=0.5&seed="
    assert seen["links"]["first"] == f"{link}4&go=1" and seen["links"]["again"] == f"{link}5&go=1"
    assert seen["links"]["copied"].endswith(f"/{link}5&go=1") and seen["links"]["said"] == "The link is copied."


def test_a_changed_text_makes_the_result_stale(seen):
    assert seen["links"]["stale"] == [False, True, False]
    assert seen["links"]["again_is_offered"] and not seen["empty"]["again_is_offered"]


def test_the_page_says_what_the_run_has_learned(seen):
    assert seen["learned"]["model"].endswith(f"It learned {LEARNED.summary}.")
    assert seen["learned"]["examples"] == ["The ____ was very good.", "I ____ this place!"]
    assert seen["learned"]["placeholder"] == "The ____ was very good."
    assert seen["learned"]["after_click"] == "The The was very good."


def test_unknown_words_and_texts_far_from_the_corpus_are_named(seen):
    assert seen["learned"]["notes"] == ["Unknown to the model: very."]
    assert seen["far"] == [
        f"This text is far from what the model learned: {LEARNED.warning('the ____ ramen ____')}.",
        "Unknown to the model: ramen.",
    ]


def test_the_live_region_says_the_best_text_and_the_notes(seen):
    assert seen["learned"]["said"] == "Best text: The The was very good. 8 ways to fill it. Unknown to the model: very."


def test_text_from_right_to_left_has_its_direction(seen):
    assert seen["hebrew"] == {"directions": ["rtl"] * 4, "isolated": ["יפה"], "text": "שלום יפה עולם"}


@pytest.mark.parametrize("width", [375, 320])
def test_long_names_and_words_fit_a_phone(width, seen):
    phone = seen[f"phone{width}"]
    assert phone["widths"] == [width, width] and min(phone["lengths"]) > 90
    assert phone["in_view"] and phone["keys"] == "Tap “Fill the blanks” when the text is ready."
    assert seen["empty"]["keys"] == "Press Enter to fill, Shift+Enter for a new line."


def test_the_page_finds_the_same_blanks_as_the_tokenizer(seen):
    assert seen["blanks"] == {"chips": ["____", "____", "[blank]", "__", "__m__"], "count": "5 blanks."}


@pytest.mark.parametrize(
    ("text", "warning", "infills"),
    [
        ("the [MASK] was cold", "the text has no blank, but [MASK]: a blank is ____", 0),
        ("the soup was cold", "the text has no blank: a blank is ____", 0),
        ("the ____ was un____able", "the text has un____able, which is not a blank: a blank is ____", 1),
        ("the ____ was cold", "", 1),
    ],
)
def test_a_warning_explains_why_a_blank_is_not_filled(text, warning, infills, seen):
    hint, fills, status = seen["warnings"][text]
    assert hint.startswith(warning) and bool(hint) == bool(warning) and "blank_token" not in hint
    assert fills == infills and ("8 ways to fill it" in status) == bool(infills)


def test_an_empty_text_is_an_error(seen):
    assert seen["nothing"].startswith("The text is empty")
