"""The batched engine against the sequential oracle, in float64 with tiny random models."""

import gc
import json
import random
import weakref
from pathlib import Path

import pytest
import tiny_models
import torch
import transformers

from benchmarks.sequential import SequentialInfiller
from mars_score import MarsScorer
from mars_score.infilling import drafting, engine
from mars_score.infilling.batched import CausalInfiller
from mars_score.infilling.jobs import JobState
from mars_score.metrics.template import Template
from mars_score.models import language_model
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.kv_cache import KeyValueCache
from mars_score.models.log_probability import surprisals
from mars_score.models.running import BatchSize, is_out_of_memory, position_limit
from mars_score.models.tagger import WordAnalyser
from mars_score.settings.stages import InfillingSettings, PlanningSettings

EXAMPLES = Path(__file__).parent.parent / "examples"
BUILDERS = {"gpt2": tiny_models.tiny_gpt2, "llama": tiny_models.tiny_llama}
PLANNED, PLAIN = PlanningSettings(planner="self"), PlanningSettings(planner="none")
FUSED = PlanningSettings("self", plan_fusion=0.8, plan_norm_exponent=1.5, plan_iterations=2, plan_step=0.1)
BRIEFLY_PLANNED = PlanningSettings("self", plan_iterations=1)


def make(models, planning=PLAIN, infilling=None, batch_size=None):
    return CausalInfiller(CausalLanguageModel(*models), planning, infilling or InfillingSettings(), batch_size)


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
    analyses = WordAnalyser().analyse(text for _, text in texts)
    for (context, _), analysis in zip(texts, analyses.values(), strict=True):
        for ratio in (0.2, 0.5):
            count = max(1, int(ratio * len(analysis.words)))
            masked = generator.sample(range(len(analysis.words)), count)
            work.append((context, Template.from_mask(analysis, masked)))
    return work


def jobs_of(infiller, of_pairs, limit=None):
    return [infiller.make_job(*pair, limit)[0] for pair in of_pairs]


def infill(infiller, jobs):
    """The infills of each job."""
    infills = {}
    infiller.infill(jobs, infills.__setitem__)
    return [infills[job] for job in jobs]


def texts_of(infiller, work, limit=None):
    """The augmented text of each pair."""
    texts = {}
    infiller.augment(work, texts.__setitem__, limit)
    return texts


def assert_same(infills, expected):
    assert [infill.tokens for infill in infills] == [tuple(b.generated[: b.length]) for b in expected.blanks]
    for infill, blank in zip(infills, expected.blanks, strict=True):
        assert infill.perplexities == pytest.approx(blank.perplexities, rel=1e-9)


CASES = {
    "planned": (PLANNED, InfillingSettings(), 192),
    "small window": (BRIEFLY_PLANNED, InfillingSettings(), 96),
    "limited context": (BRIEFLY_PLANNED, InfillingSettings(sigma=0, max_context_tokens=5), 192),
    "tiny window": (BRIEFLY_PLANNED, InfillingSettings(), 17),
    "plain": (PLAIN, InfillingSettings(), 192),
    "fused": (FUSED, InfillingSettings(sigma=1), 192),
}


def cases():
    """Every case with a third of the pairs and one kind of model; with all pairs and both kinds they are slow."""
    for number, name in enumerate(CASES):
        for place, kind in enumerate(BUILDERS):
            if (number + place) % 2 == 0:
                yield pytest.param(name, kind, slice(number % 3, None, 3), [3], id=f"{name}-{kind}-third")
            yield pytest.param(name, kind, slice(None), [1, 3], id=f"{name}-{kind}", marks=pytest.mark.slow)


# Texts are read and drafts are judged in parts of such sizes.
PARTS = {
    (language_model, "CHUNK"): 4,
    (language_model, "PASS_TOKENS"): 10,
    (language_model, "VOCABULARY_ROWS"): 3,
    (drafting, "MASK_ENTRIES"): 1,
}


@pytest.mark.parametrize(("name", "kind", "which", "batch_sizes"), list(cases()))
def test_engine_equals_oracle(name, kind, which, batch_sizes, monkeypatch):
    """Tokens and perplexities, also in parts; and the texts in one batch, with pairs in any order, some twice."""
    planning, infilling, window = CASES[name]
    model, tokenizer = BUILDERS[kind](seed=5, n_positions=window)
    sequential = SequentialInfiller(model, tokenizer, planning, infilling)
    work = pairs()[which]
    expected = [sequential.infill(*pair) for pair in work]
    for batch_size, parts in [*((size, {}) for size in batch_sizes), (3, PARTS)]:
        for place, value in parts.items():
            monkeypatch.setattr(*place, value)
        infiller = make((model, tokenizer), planning, infilling, batch_size)
        jobs = jobs_of(infiller, work[::-1], infilling.max_context_tokens)
        for infills, infilled in zip(infill(infiller, jobs), expected[::-1], strict=True):
            assert_same(infills, infilled)
    monkeypatch.undo()
    shuffled = random.Random(1).sample([*work, *work[:3]], len(work) + 3)
    texts = texts_of(make((model, tokenizer), planning, infilling, 17), shuffled, infilling.max_context_tokens)
    assert [texts[pair].text for pair in work] == [infilled.text for infilled in expected]


@pytest.mark.parametrize(("n_positions", "cut"), [(96, "context_cut"), (17, "reference_cut")])
def test_cases_reach_the_window(n_positions, cut):
    """The small windows do cut contexts and references, so that the cases above test it."""
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
    usual = getattr(owner, name)

    def watched(*args, **options):
        note(*args, **options)
        return usual(*args, **options)

    monkeypatch.setattr(owner, name, watched)


@pytest.mark.parametrize("batch_size", [2, 64])
def test_prompts_are_read_once(causal, monkeypatch, batch_size):
    """Though the jobs of a prompt are not let in together."""
    infiller = make(causal, batch_size=batch_size)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs())))
    read = []
    watch(monkeypatch, infiller.model, "read", lambda texts, *args: read.extend(texts))
    infill(infiller, jobs)
    prompts = {job.prompt for job in jobs}
    assert len(prompts) < len(jobs)
    leads = [(job.prompt[-1], *job.lead[:-1]) for job in jobs if job.lead]
    assert sorted(read) == sorted([*(prompt[:-1] for prompt in prompts if prompt[1:]), *leads])


def test_no_more_rows_than_memory_holds(causal, monkeypatch):
    """Long jobs a few abreast, short ones in greater number; a finished job makes room for the next."""
    infiller = make(causal, batch_size=8)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs())))
    expected = infill(infiller, jobs)
    longest = max(job.most_tokens(3) for job in jobs)
    caches = []
    watch(monkeypatch, drafting, "plain_step", lambda model, cache, tokens: caches.append((cache, len(tokens))))
    monkeypatch.setattr(engine, "cache_bytes", lambda device: 2 * longest * infiller.model.token_bytes)
    assert tokens_of(infill(infiller, jobs)) == tokens_of(expected)
    assert all(used <= cache.rows and cache.rows * cache.capacity <= 2 * longest for cache, used in caches)
    assert len({cache.rows for cache, _ in caches}) > 1


OUT_OF_MEMORY = torch.OutOfMemoryError("CUDA out of memory")


def fail_beyond(monkeypatch, model, most, error):
    """A pass over more than ``most`` rows fails."""

    def fail(tokens, positions, feed):
        if len(feed.counts) > most:
            raise error

    watch(monkeypatch, model, "forward", fail)


@pytest.mark.parametrize(("error", "planning"), [(OUT_OF_MEMORY, BRIEFLY_PLANNED), (MemoryError(), PLAIN)])
def test_running_out_of_memory_halves_the_batch(gpt2, monkeypatch, error, planning):
    """Other errors are raised, and that of a single job that does not fit."""
    infiller = make(gpt2, planning, batch_size=8)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs()[4:])))
    expected = infill(infiller, jobs)
    with monkeypatch.context() as broken:
        fail_beyond(broken, infiller.model, 0, RuntimeError("shapes"))
        with pytest.raises(RuntimeError, match="shapes"):
            infill(infiller, jobs)
    assert infiller.batch.size == 8
    fail_beyond(monkeypatch, infiller.model, 3, error)
    done = []
    infiller.infill([*jobs, *jobs[:2]], lambda *finished: done.append(finished))  # equal ones once
    assert len(done) == len(jobs)
    infills = dict(done)
    assert tokens_of(infills[job] for job in jobs) == tokens_of(expected)
    assert infiller.batch.size == 2
    fail_beyond(monkeypatch, infiller.model, 0, error)
    with pytest.raises(type(error)):
        infill(infiller, jobs)
    assert infiller.batch.size == 1


def test_likelihoods_are_read_in_smaller_batches_where_memory_runs_out(causal, monkeypatch):
    texts = [(context, "home again") for context in ("The car broke.", "A truck", "It rained.", "Now", "And then")]
    expected = surprisals(CausalLanguageModel(*causal), texts)
    model = CausalLanguageModel(*causal)
    fail_beyond(monkeypatch, model, 2, OUT_OF_MEMORY)
    assert [read.mean for read in surprisals(model, texts)] == pytest.approx([read.mean for read in expected])


def test_batches_of_similar_length_are_halved_where_memory_runs_out():
    items = ["a" * length for length in (3, 1, 5, 2, 4)]
    batches, done = [], []

    def work(batch):
        batches.append([len(item) for item in batch])
        if len(batch) > 2:
            raise OUT_OF_MEMORY
        return [item.upper() for item in batch]

    size = BatchSize(8)
    assert size.map(work, items, len, lambda *finished: done.append(finished)) == [item.upper() for item in items]
    assert batches == [[5, 4, 3, 2, 1], [5, 4], [3, 2], [1]]
    assert sorted(done) == sorted((item, item.upper()) for item in items)
    with pytest.raises(RuntimeError, match="can't allocate memory") as error:
        torch.empty(2**48)
    assert is_out_of_memory(error.value)


def tokens_of(infills):
    return [[infill.tokens for infill in of_job] for of_job in infills]


@pytest.mark.parametrize("sigma", [0, 3])
def test_infills_hold_no_barred_tokens(causal, monkeypatch, sigma):
    """No special tokens; line breaks only where the reference has one; word starts as masked; whole characters.

    Where no prefix of a draft ends with a whole character, it is drafted again.
    """
    again = []
    watch(monkeypatch, JobState, "start_draft", lambda state, *, whole=False: again.append(whole))
    infiller = make(causal, infilling=InfillingSettings(sigma=sigma))
    jobs = jobs_of(infiller, [*pairs(0), *pairs(1), *pairs(2)])
    for job, infills in zip(jobs, infill(infiller, jobs), strict=True):
        for blank, filled in zip(job.blanks, infills, strict=True):
            text = infiller.codec.decode(filled.tokens)
            assert not set(filled.tokens) & set(causal[1].all_special_ids)
            assert job.line_breaks or "\n" not in text
            assert text[:1].isspace() == blank.begins_word
            assert "\ufffd" not in text
    assert any(again) or sigma


@pytest.mark.parametrize("settings", [{"variant": "plus", "sample_count": 1}, {"variant": "paper"}])
def test_a_discarded_scorer_frees_its_models_and_their_memory_at_once(llama, encoder, settings):
    def held():
        return sum(isinstance(thing, (CausalLanguageModel, KeyValueCache)) for thing in gc.get_objects())

    gc.collect()
    before = held()
    gc.disable()
    try:
        scorer = MarsScorer("mini", language_model=llama, encoder=encoder, store=False, **settings)
        scorer.score(["She took a train."], ["A truck took her."], ["The car broke. It was late."])
        assert held() > before
        reference = weakref.ref(scorer)
        del scorer
        assert reference() is None
        assert held() == before
    finally:
        gc.enable()
