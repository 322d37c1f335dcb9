"""What must be read of a row before it can be scored, and the reader of it: each different item once."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mars_score.data.overlap import windows
from mars_score.progress import Runtime
from mars_score.scoring.embeddings import embeddings, encoder_of
from mars_score.scoring.entailment import entailments, read_contradictions
from mars_score.scoring.form import Form
from mars_score.scoring.likelihood import likelihoods
from mars_score.scoring.row import ScorableRow
from mars_score.settings import Settings

EMBED = "embed"  # items: texts -> Embedding
MATCH = "match"  # items: texts -> Embedding with token vectors
LIKELIHOOD = "likelihood"  # items: (context, candidate) -> Likelihood
CONTRADICTION = "contradiction"  # items: Premises -> probability
KINDS = (EMBED, MATCH, LIKELIHOOD, CONTRADICTION)
ENTAILMENT = "entailment"  # items: (premise, hypothesis) -> Entailment; explanations read it

Needs = dict[str, list[Any]]  # kind -> items
Evidence = Mapping[str, Mapping[Any, Any]]  # kind -> item -> what was read


def kind_of_texts(form: Form) -> str:
    """The kind of evidence by which a candidate is compared with references and samples."""
    return MATCH if form.matching == "tokens" else EMBED


def needs(form: Form, row: ScorableRow) -> Needs:
    """What must be read to score a row: nothing for a blank candidate or a term that the row has not."""
    items: Needs = {kind: [] for kind in KINDS}
    if row.candidate:
        weights = form.weights(row)
        texts = [text for reference in row.references for text in reference.texts]
        items[kind_of_texts(form)] += [row.candidate, *texts, *row.samples]
        if "context" in weights:
            items[EMBED] += windows(row.context)
        if "likelihood" in weights:
            items[LIKELIHOOD].append((row.context, row.candidate))
        if "contradiction" in weights:
            items[CONTRADICTION] += row.premises
    return items


class Reader:
    """Reads evidence, stored or new; the models of the settings are loaded only for what is new, and stay."""

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self._store, self._encoder = runtime.store, encoder_of(settings.models, runtime)
        of_encoder = partial(embeddings, self._encoder, settings.models.numbers)
        pairs = entailments(settings.models, runtime)
        self._read: dict[str, Callable[..., dict[Any, Any]]] = {
            EMBED: of_encoder(tokens=False).read,
            MATCH: of_encoder(tokens=True).read,
            LIKELIHOOD: likelihoods(settings, runtime).read,
            CONTRADICTION: partial(read_contradictions, pairs),
            ENTAILMENT: pairs.read,
        }

    def read(
        self, kind: str, items: Sequence[Any], progress: Callable[[int, int], None] | None = None
    ) -> dict[Any, Any]:
        """The evidence of each different item; ``progress`` counts the new ones.

        Raises:
            ModelUnavailableError: a model cannot be loaded, or has no token vectors.
            UnsupportedModelError: the entailment model has no classes for entailment and contradiction.
        """
        return self._read[kind](self._store, items, progress)

    def offsets(self, texts: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Where the tokens of each text are among its characters; loads the encoder."""
        return dict(zip(texts, self._encoder.get().offsets(texts), strict=True)) if texts else {}
