"""The training sentences of the demo's model."""

from text_infilling.app import demo_sentences


def test_the_sentences_are_deterministic_and_tokenised():
    found = list(demo_sentences.sentences())
    assert found == list(demo_sentences.sentences()) and len(found) == demo_sentences.REMARKS + demo_sentences.REVIEWS
    assert all(sentence == " ".join(sentence.lower().split()) and "{" not in sentence for sentence in found)
    assert len(set(found)) > 0.6 * len(found)


def test_many_sentences_resemble_those_of_the_readme():
    found = list(demo_sentences.sentences())
    assert sum(" have a " in sentence and sentence.endswith(" , please .") for sentence in found) > 500
    assert sum(sentence.startswith("the ") and " was so " in sentence for sentence in found) > 1000


def test_praise_and_blame_use_different_adjectives():
    remarks = [sentence.split() for sentence in demo_sentences.sentences() if "was so" in sentence]
    assert any("ordered it again" in " ".join(words) for words in remarks)
    happy, unhappy = ("will be back soon", "sent it back")
    after_so = {
        end: {words[words.index("so") + 1] for words in remarks if end in " ".join(words)} for end in (happy, unhappy)
    }
    assert after_so[happy] and after_so[unhappy] and not after_so[happy] & after_so[unhappy]
