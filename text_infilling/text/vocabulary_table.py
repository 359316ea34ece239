"""Vocabulary lookups in TensorFlow that work eagerly and in a graph."""

import tensorflow as tf

from text_infilling.vocabulary import SPECIAL_TOKENS, UNK_ID, Vocabulary


class VocabularyTable:
    """A vocabulary as lookup tables: ids of words, and words of ids, in tensors.

    Args:
        vocabulary: the words and their ids.

    Example:
        >>> table = VocabularyTable(Vocabulary(["the", "soup"]))
        >>> table.lookup(["soup", "of"]).numpy().tolist()
        [8, 3]
        >>> table.tokens([8, 3]).numpy().tolist()
        [b'soup', b'<UNK>']
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self._table = None
        self._tokens = None

    @property
    def table(self) -> tf.lookup.StaticHashTable:
        """The table used by `lookup`, created on first use; a module saved as a SavedModel must hold it."""
        if self._table is None:
            # Outside the function being traced, so that all functions share one table.
            with tf.init_scope():
                ids = tf.range(len(SPECIAL_TOKENS), len(self.vocabulary), dtype=tf.int32)
                words = tf.constant(self.vocabulary.words)
                self._table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, ids), UNK_ID)
        return self._table

    def lookup(self, tokens: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Returns the int32 ids of a dense or ragged tensor of strings, in the same shape."""
        return self.table.lookup(tokens if isinstance(tokens, tf.RaggedTensor) else tf.convert_to_tensor(tokens))

    def tokens(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the words and special tokens of a dense tensor of ids, in the same shape."""
        if self._tokens is None:
            with tf.init_scope():
                self._tokens = tf.constant(SPECIAL_TOKENS + self.vocabulary.words)
        return tf.gather(self._tokens, ids)
