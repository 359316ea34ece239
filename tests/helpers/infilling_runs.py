"""Shared by tests of the infiller: a folder like that of a trained run, of a model with random weights."""

import json

from peaked import peaked_model

from text_infilling.configs.protocols import run_hparams
from text_infilling.models.registry import built_model
from text_infilling.vocabulary import EOB_ID, Vocabulary

WORDS = "i the a soup bread was is good bad cold we love n't do 's ca can . , ! ? and but `` '' so very _num_".split()
LONGEST = 8  # maximum words per infill
SIZES = {
    "self_attention": ["decoder.dim=16", "decoder.num_blocks=2", "decoder.num_heads=2", "decoder.ffn_dim=32"],
    "seq2seq": ["embedder.dim=16", "encoder.units=16", "decoder.units=16"],
}
SIZES["gan"] = [*SIZES["seq2seq"], "gan.discriminator_dim=4", "classifier.filters=2"]
TEXT = "The soup ____, but I ____ the bread!"


def write_run(folder, name="self_attention", protocol="paper", words=WORDS, settings_=()):
    """Writes a folder like that of a trained run; the model's large random weights clearly prefer some words."""
    folder.mkdir(parents=True, exist_ok=True)
    assignments = [*SIZES[name], f"decoding.max_length={LONGEST}", *settings_]
    hparams = run_hparams(protocol, "smoke", assignments, model=name)
    vocabulary = Vocabulary(words)
    model = built_model(name, len(vocabulary), hparams)
    if name != "gan":
        seed = {"self_attention": 1, "seq2seq": 4}[name]
        model.set_weights(peaked_model(len(words), seed=seed, name=name).get_weights())
    if name == "self_attention":  # makes infills end, at different lengths
        embedding = model.embedding.numpy()
        embedding[EOB_ID] *= 1.5
        model.embedding.assign(embedding)
    model.save_weights(folder / "best.weights.h5")
    vocabulary.save(folder / "vocabulary.txt")
    config = {
        "cell": {"model": name},
        "hparams": hparams,
        "vocabulary": {"hash": vocabulary.hash, "size": len(vocabulary)},
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def blanks_of(infiller, text):
    return [piece for piece in infiller.tokenizer.split(text) if piece.word is None]
