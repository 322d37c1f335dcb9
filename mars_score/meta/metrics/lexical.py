"""Metrics of words and characters: BLEU, chrF, ROUGE-L, METEOR and length; packages are imported when used."""

import io
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from mars_score.errors import ModelUnavailableError, extra_meta
from mars_score.meta.metrics import Metric
from mars_score.rows import Row
from mars_score.text import split_words

SYSTEM_WORDNET = Path("/usr/share/wordnet")  # of the package wordnet-base of Debian and Ubuntu


def sentence_bleu(candidate: str, references: Sequence[str], order: int = 4) -> float:
    """Compute sentence BLEU (Papineni et al. 2002) by sacreBLEU (Post 2018), in [0, 100].

    ``order`` is the length of the longest n-grams; texts with fewer words are scored by shorter ones.
    """
    with extra_meta():
        from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(max_ngram_order=order, effective_order=True)
    return float(bleu.sentence_score(candidate, list(references)).score)


def rouge_l(candidate: str, references: Sequence[str]) -> float:
    """Compute ROUGE-L F1 (Lin 2004) by rouge-score with its stemmer, in [0, 1]; the best over references.

    The words of rouge-score are runs of a-z and 0-9, and a candidate without any scores 0.
    """
    with extra_meta():
        from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    return float(scorer.score_multi(list(references), candidate)["rougeL"].fmeasure)


class Bleu(Metric):
    """BLEU by :func:`sentence_bleu` over all references of a row at once, in [0, 1]."""

    title = "BLEU"
    order: ClassVar[int] = 4

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of rows."""
        return [sentence_bleu(row.candidate, row.references, self.order) / 100 for row in rows]


class Bleu1(Bleu):
    """BLEU of single words, which is clipped precision times brevity penalty."""

    title = "BLEU-1"
    order = 1


class Chrf(Metric):
    """chrF with n up to 6 and beta = 2 (Popović 2015) by sacreBLEU, in [0, 1]; the best over references."""

    title = "chrF"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of rows."""
        with extra_meta():
            from sacrebleu.metrics.chrf import CHRF

        chrf = CHRF()
        return [chrf.sentence_score(row.candidate, list(row.references)).score / 100 for row in rows]


class RougeL(Metric):
    """ROUGE-L by :func:`rouge_l`."""

    title = "ROUGE-L"
    note = "words are of the letters a-z and digits only"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of rows."""
        return [rouge_l(row.candidate, row.references) for row in rows]


class Length(Metric):
    """Number of words, as a baseline for metrics that may only reward length."""

    title = "length"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of rows."""
        return [float(len(split_words(row.candidate))) for row in rows]


class Meteor(Metric):
    """METEOR (Lavie and Agarwal 2007: alpha 0.9, beta 3, gamma 0.5) by nltk, in [0, 1); the best over references.

    Words are lower-cased runs of letters and digits or of other signs (nltk's wordpunct), as nltk's Treebank
    tokenizer leaves the full stop on the last word of every sentence but the last. nltk looks up stems in WordNet,
    so that only words that equal their stem ("car", "auto") can match as synonyms.
    """

    title = "METEOR"
    note = "nltk's, which looks up stems in WordNet"

    @cached_property
    def wordnet(self) -> Any:
        """Open nltk's copy of WordNet or else the system's; nothing is downloaded.

        Raises:
            ModelUnavailableError: there is neither copy.
        """
        with extra_meta():
            import nltk.data
            from nltk.corpus.reader.wordnet import WordNetCorpusReader

        class PlainWordNet(WordNetCorpusReader):  # type: ignore[misc]
            """A reader without the files that METEOR does not need and Debian does not have."""

            def open(self, file: str) -> Any:
                """Open a file, or make up the names of the 45 lexicographer files (lexnames(5WN))."""
                lexnames = "".join(f"{number:02d} file{number} 0\n" for number in range(45))
                return io.StringIO(lexnames) if file == "lexnames" else super().open(file)

            def map_wn(self, version: str = "wordnet") -> None:
                """Skip the map to another version, which only other languages need."""

        try:
            root = nltk.data.find("corpora/wordnet/")  # With the slash it is found in a zip, too.
        except LookupError:
            if not (SYSTEM_WORDNET / "data.noun").is_file():
                raise ModelUnavailableError(
                    'METEOR needs WordNet; run: apt-get install wordnet-base (in Python: nltk.download("wordnet"))'
                ) from None
            root = str(SYSTEM_WORDNET)
            if root not in nltk.data.path:  # nltk opens only files in registered folders.
                nltk.data.path.append(root)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The multilingual functions are not available")
            return PlainWordNet(root, None)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of rows."""
        with extra_meta():
            from nltk.tokenize import wordpunct_tokenize
            from nltk.translate.meteor_score import meteor_score

        def words(row: Row) -> tuple[list[list[str]], list[str]]:
            return [wordpunct_tokenize(text) for text in row.references], wordpunct_tokenize(row.candidate)

        return [float(meteor_score(*words(row), wordnet=self.wordnet)) for row in rows]
