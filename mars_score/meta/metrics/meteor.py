"""METEOR, the F-score of words aligned by form, stem and WordNet's synonyms, less a penalty for broken order."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mars_score.data.validation import Row
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.base import Metric
from mars_score.meta.metrics.extras import need

_SYSTEM_FOLDER = Path("/usr/share/wordnet")  # of the package wordnet-base of Debian and Ubuntu
_READ_FILES = [f"{kind}.{pos}" for kind in ("index", "data") for pos in ("adj", "adv", "noun", "verb")]
_READ_FILES += [f"{pos}.exc" for pos in ("adj", "adv", "noun", "verb")]


class Meteor(Metric):
    """METEOR (Lavie and Agarwal 2007: alpha 0.9, beta 3, gamma 0.5) by nltk; the best over references.

    Words are lower-cased runs of letters and digits or of other signs (nltk's wordpunct), for nltk's Treebank
    tokenizer would leave the full stop on the last word of every sentence but the last. nltk hands stems to
    WordNet, so that only words that are their own stem ("car", "auto") can match as synonyms.
    """

    title = "METEOR"
    family = "reference"
    packages = (("nltk", "nltk"),)
    note = "nltk's, which looks up stems in WordNet"

    @cached_property
    def _wordnet(self) -> Any:
        return _load_wordnet()

    def key(self) -> Sequence[Any]:
        """With WordNet's version and a hash of its files (there are patched ones).

        Raises:
            ImportError: nltk is not installed.
            ModelUnavailableError: WordNet is not there.
        """
        return [*super().key(), self._wordnet.get_version(), _hash(self._wordnet)]

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """In [0, 1); m words in the reference's order score 1 - 0.5 / m**3.

        Raises:
            ImportError: nltk is not installed.
            ModelUnavailableError: WordNet is not there.
        """
        split = need("nltk.tokenize").wordpunct_tokenize
        meteor = need("nltk.translate.meteor_score").meteor_score
        return [
            float(meteor([split(one) for one in references], split(candidate), wordnet=self._wordnet))
            for candidate, references, _ in rows
        ]


def _load_wordnet() -> Any:
    """A reader of nltk's copy of WordNet or else of the system's; nothing is fetched.

    Raises:
        ImportError: nltk is not installed.
        ModelUnavailableError: there is neither copy.
    """
    data = need("nltk.data")
    reader = need("nltk.corpus.reader.wordnet").WordNetCorpusReader

    class Reader(reader):  # type: ignore[misc, valid-type]
        """Does without the files that only other uses need: Debian has no ``lexnames`` and ``index.sense``."""

        def open(self, file: str) -> Any:
            """A file; names of the lexicographers' 45 files (lexnames(5WN)) are made up."""
            if file == "lexnames":
                return io.StringIO("".join(f"{number:02d} file{number} 0\n" for number in range(45)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """No map to another version, which is for other languages."""

    try:
        root = data.find("corpora/wordnet/")  # the slash finds it in a zip as well
    except LookupError:
        if not (_SYSTEM_FOLDER / "data.noun").is_file():
            raise ModelUnavailableError(
                'METEOR needs WordNet; run: apt-get install wordnet-base (or in Python: nltk.download("wordnet"))'
            ) from None
        root = str(_SYSTEM_FOLDER)
        if root not in data.path:  # nltk opens files in registered folders only
            data.path.append(root)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The multilingual functions are not available")
        return Reader(root, None)


def _hash(wordnet: Any) -> str:
    """Hash of the files that METEOR reads."""
    digest = hashlib.blake2b(digest_size=8)
    for name in _READ_FILES:
        with wordnet.open(name) as file:
            digest.update(file.read().encode())
    return digest.hexdigest()
