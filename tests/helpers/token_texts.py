"""Texts that test tokenizers: words of many scripts, parts of blanks and special tokens, marks in odd places."""

from hypothesis import strategies as st

from text_infilling.text.tokenizer import Tokenizer

LOWER, CASED = Tokenizer(lower=True), Tokenizer(lower=False)
YELP_LIKE = frozenset(
    "i ca n't 's eat dr. dr jones good good. it bar grill wi-fi a+ can not gon na _num_".split()
    + ". , ! ? ... -- - / `` '' $".split()
)
# Words of many scripts and kinds, and parts of blanks and of special tokens.
PARTS = [
    "a",
    "Ab",
    "don't",
    "king's",
    "é",
    "שלום",
    "مرحبا",
    "漢字",
    "؟",
    "！",
    "🙂",
    "👨‍👩‍👧",
    "3.50",
    "\x00",
    "\u200b",
    "<m>",
    "<EOB>",
    "<PAD>",
]
PARTS += "https://a.b/d?e=1, www.a me@x.org C++ C# #a @a --a -a w/ a/b AT&T &apos; &#39; 'n' ’tis '90s :-) <3".split()
PARTS += (
    ".5 :30 1,000 10:30pm $ 5$ * *a* a(s) (a)b ‘ „ — – … ~/a + = -> >= \u00ad \u2060 \ufeff \u200c \u200d 1️⃣".split()
)
PARTS += list(" \t\n\u00a0\u3000.,!?'\"’“”()[]{}<>-–—…/&$%#*_@") + [
    "____",
    "__m__",
    "[blank]",
    "..",
    "--",
    "''",
    "n't",
    "a,10",
    ",104",
    "____n't",
    "’s",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)
# Tokens whose joining needs rules.
WORDS = "the soup i good n't 's , . ! ? ... `` '' ( ) $ _num_ - % ' gon na dr.".split()
