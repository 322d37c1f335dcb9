"""The batched form of Algorithm 2 against the plain one, in float64 with tiny random models."""

import gc
import json
import random
import re
import weakref
from dataclasses import replace

import pytest
import torch
import transformers

from mars_score.infilling import batched
from mars_score.infilling.batched import BatchedInfiller
from mars_score.infilling.jobs import JobState
from mars_score.language import Tagger
from mars_score.metrics.paper import PaperConfig, mask_words
from mars_score.models import causal_lm
from mars_score.models.attention import KeyValueCache
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.likelihood import log_probabilities
from mars_score.models.running import BatchSize, is_out_of_memory, position_limit
from mars_score.text import TaggedWord
from tests import ROOT, tiny_models
from tests.oracle_infilling import PlainInfiller

EXAMPLES = ROOT / "examples"
BUILDERS = {"gpt2": tiny_models.tiny_gpt2, "llama": tiny_models.tiny_llama}
PLANNED, PLAIN = PaperConfig(planner="self"), PaperConfig(planner="none")
BRIEFLY_PLANNED = PaperConfig(planner="self", plan_iterations=1)


def make(models, config=PLAIN, batch_size=None):
    return BatchedInfiller(CausalLanguageModel(*models), config, batch_size)


def pairs(seed=0):
    """(context, template) pairs: real texts, a shared context, none, and texts that are hard to tokenise.

    Words are masked at random, leading and trailing ones too.
    """
    rows = [json.loads(line) for line in (EXAMPLES / "stories.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [
        (rows[0]["context"], "She called a friend and waited for help."),
        (rows[0]["context"], "A truck took her home."),
        (rows[1]["context"], "They don't win, but it's\nfine: caf\u00e9 \U0001f600 na\u00efve!"),
        ("Hi <mask> <|endoftext|>", "Well, that was quick."),  # in a text the names of special tokens are text
        ("", "Nobody knew why."),
        ("", "\u05e9\u05dc\u05d5\u05dd  world ..."),
    ]
    generator, work = random.Random(seed), []
    words = Tagger().tag(text for _, text in texts)
    for context, text in texts:
        for ratio in (0.2, 0.5):
            count = max(1, int(ratio * len(words[text])))
            masked = generator.sample(range(len(words[text])), count)
            work.append((context, mask_words(text, words[text], masked)))
    return work


def jobs_of(infiller, work):
    return [infiller.make_job(*pair)[0] for pair in work]


def infill(infiller, jobs):
    """The filled blanks of each job."""
    filled = dict(infiller.infill_jobs(jobs))
    return [filled[job] for job in jobs]


def texts_of(infiller, work):
    """The filled template of each pair."""
    return dict(infiller.infill(work))


def assert_same(filled, expected):
    assert [blank.tokens for blank in filled] == [tuple(b.generated[: b.length]) for b in expected.blanks]
    for blank, plain in zip(filled, expected.blanks, strict=True):
        assert blank.perplexities == pytest.approx(plain.perplexities, rel=1e-9)


CASES = {
    "planned": (PLANNED, 192),
    "small window": (BRIEFLY_PLANNED, 96),
    "limited context": (PaperConfig(plan_iterations=1, sigma=0, max_context_tokens=5), 192),
    "tiny window": (BRIEFLY_PLANNED, 17),
    "plain": (PLAIN, 192),
    "fused": (
        PaperConfig(sigma=1, plan_fusion=0.8, plan_norm_exponent=1.5, plan_iterations=2, plan_step=0.1),
        192,
    ),
}


def cases():
    """Every case with a third of the pairs, in chunks, and one kind of model; with all of them they are slow."""
    for number, name in enumerate(CASES):
        for builder, kind in enumerate(BUILDERS):
            if (number + builder) % 2 == 0:
                yield pytest.param(name, kind, slice(number % 3, None, 3), [], id=f"{name}-{kind}-third")
            yield pytest.param(name, kind, slice(None), [1, 3], id=f"{name}-{kind}", marks=pytest.mark.slow)


# The model runs over texts, and drafts are judged, in chunks of such sizes.
CHUNKS = {
    (causal_lm, "CHUNK_TOKENS"): 4,
    (causal_lm, "PASS_TOKENS"): {"cpu": 10},
    (causal_lm, "LOGIT_ROWS"): 3,
    (batched, "MASK_ENTRIES"): 1,
}


@pytest.mark.parametrize(("name", "kind", "which", "batch_sizes"), list(cases()))
def test_batched_form_equals_plain_form(name, kind, which, batch_sizes, monkeypatch):
    """Tokens and perplexities, also in chunks; and the texts in one batch, with pairs in any order, some twice."""
    config, window = CASES[name]
    models = BUILDERS[kind](seed=5, n_positions=window)
    plain = PlainInfiller(*models, config)
    work = pairs()[which]
    expected = [plain.fill(*pair) for pair in work]
    for batch_size, chunks in [*((size, {}) for size in batch_sizes), (3, CHUNKS)]:
        for attribute, value in chunks.items():
            monkeypatch.setattr(*attribute, value)
        infiller = make(models, config, batch_size)
        for filled, result in zip(infill(infiller, jobs_of(infiller, work[::-1])), expected[::-1], strict=True):
            assert_same(filled, result)
    monkeypatch.undo()
    shuffled = random.Random(1).sample([*work, *work[:3]], len(work) + 3)
    texts = texts_of(make(models, config, 17), shuffled)
    assert [texts[pair] for pair in work] == [result.filled for result in expected]


# Texts in which tokenizers of tests/tiny_models.py drop a variation selector, an invisible space and an accent.
DROPPED_TEXTS = ("Lovely \u2764\ufe0f pizza", "\ufe0f\u200b\u0301so")


def masks_around_dropped():
    """(context, template) pairs: dropped words are blanks, blocks between two of them, and at the ends."""
    for text in DROPPED_TEXTS:
        words = [TaggedWord(*match.span(), "X") for match in re.finditer(r"[!-~]+|[^!-~\s]", text)]
        for context, masked in (("", [0, 2]), ("\ufe0f", [1, 3]), ("Hi. \ufe0f", [0, 1, 3]), ("", [2])):
            yield context, mask_words(text, words, masked)


@pytest.mark.parametrize(
    ("dropped", "config"),
    zip(tiny_models.DROPPING, [replace(BRIEFLY_PLANNED, sigma=0), replace(PLAIN, sigma=1)] * 2, strict=True),
)
def test_blocks_and_blanks_that_the_tokenizer_drops(dropped, config):
    models = tiny_models.tiny_gpt2(seed=5, tokenizer=tiny_models.dropping_tokenizer(dropped))
    plain, work = PlainInfiller(*models, config), list(masks_around_dropped())
    infiller = make(models, config, 3)
    jobs = jobs_of(infiller, work)
    assert any(not blank.block for job in jobs for blank in job.blanks[:-1])
    for pair, filled in zip(work, infill(infiller, jobs), strict=True):
        assert_same(filled, plain.fill(*pair))


def test_passages_of_a_context_are_paragraphs(causal):
    [(_, template)] = pairs()[:1]
    work = [("A truck came.\x1eIt was late.", template), ("A truck came.\n\nIt was late.", template)]
    texts = texts_of(make(causal), work)
    assert texts[work[0]] == texts[work[1]] == PlainInfiller(*causal, PLAIN).fill(*work[0]).filled


@pytest.mark.parametrize(("n_positions", "cut"), [(96, "context_cut"), (17, "reference_cut")])
def test_cases_reach_the_window(n_positions, cut):
    """So that the cases above test small windows."""
    texts = texts_of(make(tiny_models.tiny_gpt2(seed=5, n_positions=n_positions)), pairs())
    assert any(getattr(text, cut) for text in texts.values())


@pytest.mark.parametrize(("kind", "positions"), [("Roberta", 38), ("Camembert", 38), ("MPNet", 38), ("Bert", 40)])
def test_position_limit(kind, positions):
    """Some architectures count positions from the padding token's id on, whatever they are called."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = getattr(transformers, f"{kind}Config")(
        **sizes, vocab_size=9, pad_token_id=1, max_position_embeddings=40
    )
    model = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    assert position_limit(model) == positions
    assert model(torch.full((1, positions), 5)).logits.shape[1] == positions
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, positions + 1), 5))


def watch(monkeypatch, owner, name, note):
    """Calls of a function; ``note`` is called with their arguments before them, and may raise."""
    original = getattr(owner, name)

    def watched(*args, **options):
        note(*args, **options)
        return original(*args, **options)

    monkeypatch.setattr(owner, name, watched)


@pytest.mark.parametrize("batch_size", [2, 64])
def test_the_model_runs_over_a_prompt_once(causal, monkeypatch, batch_size):
    """Whether the jobs of a prompt are let in together or not."""
    infiller = make(causal, batch_size=batch_size)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs())))
    expected, texts = infill(make(causal, batch_size=1), jobs), []
    watch(monkeypatch, infiller.model, "extend", lambda cache, new, *args: texts.extend(new))
    assert tokens_of(infill(infiller, jobs)) == tokens_of(expected)
    prompts = {job.prompt for job in jobs}
    assert len(prompts) < len(jobs)
    leads = [(job.prompt[-1], *job.lead[:-1]) for job in jobs if job.lead]
    assert sorted(texts) == sorted([*(prompt[:-1] for prompt in prompts if prompt[1:]), *leads])


def test_no_more_rows_than_memory_holds(causal, monkeypatch):
    """Long jobs a few abreast, short ones in greater number; a finished job makes room for the next."""
    infiller = make(causal, batch_size=8)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs())))
    expected = infill(infiller, jobs)
    longest = max(job.most_tokens(3) for job in jobs)
    caches = []
    watch(monkeypatch, batched, "plain_step", lambda model, cache, tokens: caches.append((cache, len(tokens))))
    monkeypatch.setattr(batched, "cache_bytes", lambda device: 2 * longest * infiller.model.token_bytes)
    assert tokens_of(infill(infiller, jobs)) == tokens_of(expected)
    assert all(used <= cache.rows and cache.rows * cache.capacity <= 2 * longest for cache, used in caches)
    assert len({cache.rows for cache, _ in caches}) > 1


OUT_OF_MEMORY = torch.OutOfMemoryError("CUDA out of memory")


def fail_beyond(monkeypatch, model, most, error):
    """A pass over more than ``most`` rows fails."""

    def fail(tokens, positions, batch):
        if len(batch.counts) > most:
            raise error

    watch(monkeypatch, model, "forward", fail)


@pytest.mark.parametrize(("error", "config"), [(OUT_OF_MEMORY, BRIEFLY_PLANNED), (MemoryError(), PLAIN)])
def test_running_out_of_memory_halves_the_batch(gpt2, monkeypatch, error, config):
    """Other errors are raised, and that of a single job that does not fit."""
    infiller = make(gpt2, config, batch_size=8)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs()[4:])))
    expected = infill(infiller, jobs)
    with monkeypatch.context() as broken:
        fail_beyond(broken, infiller.model, 0, RuntimeError("shapes"))
        with pytest.raises(RuntimeError, match="shapes"):
            infill(infiller, jobs)
    assert infiller.batch.size == 8
    fail_beyond(monkeypatch, infiller.model, 3, error)
    finished = list(infiller.infill_jobs([*jobs, *jobs[:2]]))  # equal ones once
    assert len(finished) == len(jobs)
    infills = dict(finished)
    assert tokens_of(infills[job] for job in jobs) == tokens_of(expected)
    assert infiller.batch.size == 2
    fail_beyond(monkeypatch, infiller.model, 0, error)
    with pytest.raises(type(error)):
        infill(infiller, jobs)
    assert infiller.batch.size == 1


def test_log_probabilities_are_computed_in_smaller_batches_where_memory_runs_out(causal, monkeypatch):
    texts = [(context, "home again") for context in ("The car broke.", "A truck", "It rained.", "Now", "And then")]
    expected = dict(log_probabilities(CausalLanguageModel(*causal), texts))
    model = CausalLanguageModel(*causal)
    fail_beyond(monkeypatch, model, 2, OUT_OF_MEMORY)
    halved = dict(log_probabilities(model, texts))
    assert [halved[pair].mean for pair in texts] == pytest.approx([expected[pair].mean for pair in texts])


def test_batches_of_similar_length_are_halved_where_memory_runs_out():
    items = ["a" * length for length in (3, 1, 5, 2, 4)]
    batches = []

    def work(batch):
        batches.append([len(item) for item in batch])
        if len(batch) > 2:
            raise OUT_OF_MEMORY
        return [item.upper() for item in batch]

    results = BatchSize(8).map(work, items, len)
    assert next(results) == ("aaaaa", "AAAAA")
    assert batches == [[5, 4, 3, 2, 1], [5, 4]]  # no more than what is asked for
    assert list(results) == [("a" * length, "A" * length) for length in (4, 3, 2, 1)]
    assert batches[2:] == [[3, 2], [1]]
    with pytest.raises(RuntimeError, match="can't allocate memory") as error:
        torch.empty(2**48)
    assert is_out_of_memory(error.value)


def tokens_of(infills):
    return [[blank.tokens for blank in filled] for filled in infills]


@pytest.mark.parametrize("sigma", [0, 3])
def test_infills_hold_no_barred_tokens(causal, monkeypatch, sigma):
    """No special tokens; line breaks only where the reference has one; word starts as masked; whole characters.

    Where no prefix of a draft ends with a whole character, it is drafted again.
    """
    again = []

    def note(_, *, whole_characters=False):
        again.append(whole_characters)

    watch(monkeypatch, JobState, "start_draft", note)
    infiller = make(causal, PaperConfig(planner="none", sigma=sigma))
    work = [*pairs(0), *pairs(1), *pairs(2)]
    jobs = jobs_of(infiller, work)
    for (_, template), job, infills in zip(work, jobs, infill(infiller, jobs), strict=True):
        for blank, filled in zip(job.blanks, infills, strict=True):
            text = infiller.model.codec.decode(filled.tokens)
            assert not set(filled.tokens) & set(causal[1].all_special_ids)
            assert "\n" in template.reference or "\n" not in text
            assert text[:1].isspace() == blank.begins_word
            assert "\ufffd" not in text
    assert any(again) or sigma


@pytest.mark.parametrize("variant", ["plus", "paper"])
def test_a_discarded_scorer_frees_its_models_and_their_memory_at_once(llama, encoder, variant):
    from mars_score import MarsScorer

    def held():
        return sum(isinstance(thing, (CausalLanguageModel, KeyValueCache)) for thing in gc.get_objects())

    gc.collect()
    before = held()
    gc.disable()
    try:
        scorer = MarsScorer("mini", language_model=llama, encoder=encoder, store=False, variant=variant)
        scorer.score(["She took a train."], ["A truck took her."], ["The car broke. It was late."])
        assert held() > before
        reference = weakref.ref(scorer)
        del scorer
        assert reference() is None
        assert held() == before
    finally:
        gc.enable()
