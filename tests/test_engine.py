"""The batched engine against the sequential oracle, in float64 with tiny random models."""

import json
import random
from pathlib import Path

import oracle
import pytest
import tiny_models
import torch
import transformers

from mars_score.augment.infilling import drafting, engine
from mars_score.augment.infilling.engine import CausalInfiller
from mars_score.augment.infilling.jobs import JobState, fit_context, make_job
from mars_score.augment.infilling.masked import MaskedInfiller
from mars_score.augment.infilling.pipeline import augment
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.masking.template import Template
from mars_score.models.engine import language_model
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.models.engine.surprisal import surprisals
from mars_score.models.memory import is_out_of_memory
from mars_score.models.windows import position_limit
from mars_score.settings import InfillingSettings, PlanningSettings

EXAMPLES = Path(__file__).parent.parent / "examples"
BUILDERS = {"gpt2": tiny_models.tiny_gpt2, "llama": tiny_models.tiny_llama}
PLANNED, PLAIN = PlanningSettings(planner="self"), PlanningSettings(planner="none")
FUSED = PlanningSettings("self", plan_fusion=0.8, plan_norm_exponent=1.5, plan_iterations=2, plan_step=0.1)
BRIEFLY_PLANNED = PlanningSettings("self", plan_iterations=1)


def make(models, planning=PLAIN, infilling=None, batch_size=None):
    return CausalInfiller(CausalLanguageModel(*models), planning, infilling or InfillingSettings(), batch_size)


def random_templates(texts, seed):
    """A template per text and mask ratio, with words masked at random (leading and trailing ones too)."""
    generator = random.Random(seed)
    templates = []
    for analysis in WordAnalyser().analyse(texts):
        for ratio in (0.2, 0.5):
            count = max(1, int(ratio * len(analysis.words)))
            templates.append(Template.from_mask(analysis, generator.sample(range(len(analysis.words)), count)))
    return templates


def pairs(seed=0):
    """(context, template) pairs: real texts, a shared context, none, and texts that are hard to tokenise."""
    rows = [json.loads(line) for line in (EXAMPLES / "stories.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [
        (rows[0]["context"], "She called a friend and waited for help."),
        (rows[0]["context"], "A truck took her home."),
        (rows[1]["context"], "They don't win, but it's\nfine: caf\u00e9 \U0001f600 na\u00efve!"),
        ("Hi", "Well, that was quick."),
        ("", "Nobody knew why."),
        ("", "\u05e9\u05dc\u05d5\u05dd  world ..."),
    ]
    templates = random_templates([text for _, text in texts], seed)
    return [
        (context, template)
        for (context, _), two in zip(texts, zip(*[iter(templates)] * 2, strict=True), strict=True)
        for template in two
    ]


def jobs_of(infiller, of_pairs, limit=None):
    """The jobs as :func:`augment` makes them."""
    jobs = []
    for context, template in of_pairs:
        window = fit_context(infiller.codec, context, template.reference, infiller.window, limit)
        jobs.append(make_job(infiller.codec, template, window, infiller.sigma, infiller.shortest_start))
    return jobs


def assert_same(infills, expected):
    assert [infill.tokens for infill in infills] == [tuple(b.generated[: b.length]) for b in expected.blanks]
    for infill, blank in zip(infills, expected.blanks, strict=True):
        assert infill.perplexities == pytest.approx(blank.perplexities, rel=1e-9)


CASES = {
    "planned": (PLANNED, InfillingSettings(), 192),
    "small window": (BRIEFLY_PLANNED, InfillingSettings(), 96),
    "tiny window": (BRIEFLY_PLANNED, InfillingSettings(), 24),
    "limited context": (BRIEFLY_PLANNED, InfillingSettings(sigma=0, max_context_tokens=5), 192),
    "plain": (PLAIN, InfillingSettings(), 192),
    "fused": (FUSED, InfillingSettings(sigma=1), 192),
}


def cases():
    """Every case with a third of the pairs and one kind of model; with all pairs and both kinds they are slow."""
    for number, name in enumerate(CASES):
        for place, kind in enumerate(BUILDERS):
            if (number + place) % 2 == 0:
                yield pytest.param((name, kind, slice(number % 3, None, 3), [3]), id=f"{name}-{kind}-third")
            yield pytest.param((name, kind, slice(None), [1, 3]), id=f"{name}-{kind}", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=cases())
def case(request):
    """An infiller's arguments, its pairs, what the oracle says of them, and sizes of batches to try."""
    name, kind, which, batch_sizes = request.param
    work = pairs()[which]
    planning, infilling, window = CASES[name]
    model, tokenizer = BUILDERS[kind](seed=5, n_positions=window)
    expected = [
        oracle.infill(context, template, model, tokenizer, planning, infilling) for context, template in work
    ]
    return model, tokenizer, planning, infilling, work, expected, batch_sizes


def test_engine_equals_oracle(case):
    model, tokenizer, planning, infilling, work, expected, batch_sizes = case
    for batch_size in batch_sizes:
        infiller = make((model, tokenizer), planning, infilling, batch_size)
        jobs = jobs_of(infiller, work[::-1], infilling.max_context_tokens)
        for infills, one in zip(infiller.infill(jobs), expected[::-1], strict=True):
            assert_same(infills, one)


def test_augmented_texts_equal_the_oracle(case):
    """In one batch, with pairs in any order and more than once."""
    model, tokenizer, planning, infilling, work, expected, _ = case
    shuffled = random.Random(1).sample([*work, *work[:3]], len(work) + 3)
    texts = augment(make((model, tokenizer), planning, infilling, 17), shuffled, infilling.max_context_tokens)
    assert [texts[pair].text for pair in work] == [one.text for one in expected]


@pytest.mark.parametrize(("n_positions", "cut"), [(96, "context_cut"), (24, "reference_cut")])
def test_cases_reach_the_window(n_positions, cut):
    """The small windows do cut contexts and references, so that the cases above test it."""
    texts = augment(make(tiny_models.tiny_gpt2(seed=5, n_positions=n_positions)), pairs())
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


@pytest.mark.parametrize("n_positions", [192, 60])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_masked_infiller_equals_oracle(n_positions, batch_size):
    model, tokenizer = tiny_models.tiny_roberta_mlm(seed=3, n_positions=n_positions)
    infiller = MaskedInfiller(model, tokenizer, batch_size)
    work = pairs()
    expected = [
        oracle.infill_masked(context, template, model, tokenizer, InfillingSettings())
        for context, template in work
    ]
    for infills, one in zip(infiller.infill(jobs_of(infiller, work)), expected, strict=True):
        assert [infill.tokens for infill in infills] == [tuple(blank.generated) for blank in one.blanks]
    texts = augment(infiller, work)
    assert [texts[pair].text for pair in work] == [one.text for one in expected]


def test_equal_jobs_are_infilled_once_and_reported(causal):
    infiller = make(causal)
    jobs = jobs_of(infiller, pairs()[:2])
    done = []
    infills = infiller.infill([*jobs, *jobs], lambda *one: done.append(one))
    assert dict(done) == dict(zip(jobs, infills, strict=False))
    assert len(done) == 2
    assert infills[:2] == infills[2:]


@pytest.mark.parametrize("batch_size", [2, 64])
def test_prompts_are_read_once(causal, monkeypatch, batch_size):
    """Though the jobs of a prompt are not let in together."""
    infiller = make(causal, batch_size=batch_size)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs())))
    read = []
    usual = infiller.model.read

    def watched(texts, *args, **kwargs):
        read.extend(texts)
        return usual(texts, *args, **kwargs)

    monkeypatch.setattr(infiller.model, "read", watched)
    infiller.infill(jobs)
    prompts = {job.prompt for job in jobs}
    assert len(prompts) < len(jobs)
    assert sorted(read) == sorted([*prompts, *(job.lead for job in jobs if job.lead)])


def test_no_more_rows_than_memory_holds(causal, monkeypatch):
    """Long jobs a few abreast, short ones in greater number; a finished job makes room for the next."""
    infiller = make(causal, batch_size=8)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs())))
    expected = infiller.infill(jobs)
    longest = max(job.most_tokens(3) for job in jobs)
    sizes = []
    usual = drafting.plain_step

    def step(model, cache, tokens):
        sizes.append((cache.rows, cache.capacity, len(tokens)))
        return usual(model, cache, tokens)

    monkeypatch.setattr(drafting, "plain_step", step)
    monkeypatch.setattr(engine, "cache_bytes", lambda device: 2 * longest * infiller.model.token_bytes)
    assert tokens_of(infiller.infill(jobs)) == tokens_of(expected)
    assert all(rows * capacity <= 2 * longest for rows, capacity, _ in sizes)
    assert len({rows for rows, _, _ in sizes}) > 1
    assert all(used <= rows for rows, _, used in sizes)


@pytest.mark.parametrize(
    ("error", "planning", "name"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), BRIEFLY_PLANNED, "planned_step"),
        (MemoryError(), PLAIN, "plain_step"),
    ],
)
def test_running_out_of_memory_halves_the_batch(gpt2, monkeypatch, error, planning, name):
    infiller = make(gpt2, planning, batch_size=8)
    jobs = list(dict.fromkeys(jobs_of(infiller, pairs()[4:])))
    expected = infiller.infill(jobs)
    usual = getattr(drafting, name)

    def step(model, cache, tokens, *args):
        if len(tokens) > 3:
            raise error
        return usual(model, cache, tokens, *args)

    monkeypatch.setattr(drafting, name, step)
    done = []
    assert tokens_of(infiller.infill(jobs, lambda *one: done.append(one))) == tokens_of(expected)
    assert infiller.batch_size == 2
    assert len(done) == len(jobs)


def fail_above(monkeypatch, owner, name, most, size):
    """A method that runs out of memory if ``size`` of its arguments is above ``most``; the sizes it was given."""
    usual, sizes = getattr(owner, name), []

    def limited(*args, **options):
        sizes.append(size(*args, **options))
        if sizes[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return usual(*args, **options)

    monkeypatch.setattr(owner, name, limited)
    return sizes


def test_running_out_of_memory_halves_the_masked_infillers_batch(roberta_mlm, monkeypatch):
    model, tokenizer = roberta_mlm
    work = pairs()
    expected = augment(MaskedInfiller(model, tokenizer, 8), work)
    sizes = fail_above(monkeypatch, model, "forward", 3, lambda input_ids, **_: len(input_ids))
    assert augment(MaskedInfiller(model, tokenizer, 8), work) == expected
    assert sizes[:3] == [8, 4, 2]
    assert set(sizes[3:]) <= {1, 2}  # and stays so


def test_running_out_of_memory_halves_the_batch_of_surprisals(causal, monkeypatch):
    model = CausalLanguageModel(*causal)
    texts = [("", text) for text in ("The car broke.", "A truck", "took her", "home again and again.")]
    expected = surprisals(model, texts)
    longest = max(len(model.codec.encode(text)) for _, text in texts)
    sizes = fail_above(monkeypatch, model, "forward", longest, lambda tokens, *_: len(tokens))
    assert [one.mean for one in surprisals(model, texts)] == pytest.approx([one.mean for one in expected])
    assert max(sizes) > longest
    monkeypatch.undo()
    fail_above(monkeypatch, model, "forward", 0, lambda tokens, *_: len(tokens))
    with pytest.raises(torch.OutOfMemoryError):
        surprisals(model, texts)


@pytest.mark.parametrize(
    ("error", "batch_size"), [(torch.OutOfMemoryError("CUDA out of memory"), 1), (RuntimeError("shapes"), 8)]
)
def test_other_errors_are_raised(causal, monkeypatch, error, batch_size):
    """A single job that does not fit into memory, and what has nothing to do with memory."""

    def step(*args):
        raise error

    infiller = make(causal, PLANNED, batch_size=8)
    monkeypatch.setattr(drafting, "planned_step", step)
    with pytest.raises(type(error), match=str(error)):
        infiller.infill(jobs_of(infiller, pairs()))
    assert infiller.batch_size == batch_size


def test_what_running_out_of_memory_looks_like():
    with pytest.raises(RuntimeError) as error:
        torch.empty(2**48)
    assert is_out_of_memory(error.value)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))


def tokens_of(infills):
    return [[infill.tokens for infill in of_job] for of_job in infills]


def test_infills_hold_no_barred_tokens(causal):
    """No special tokens anywhere, line breaks only where the reference has one, word starts as masked."""
    infiller = make(causal)
    jobs = jobs_of(infiller, pairs())
    for job, infills in zip(jobs, infiller.infill(jobs), strict=True):
        for blank, infill in zip(job.blanks, infills, strict=True):
            text = infiller.codec.decode(infill.tokens)
            assert not set(infill.tokens) & set(causal[1].all_special_ids)
            assert job.line_breaks or "\n" not in text
            assert text[:1].isspace() == blank.begins_word
            assert 1 <= len(infill.tokens) <= blank.length + 3


@pytest.mark.parametrize("sigma", [0, 3])
def test_infills_end_with_whole_characters(causal, monkeypatch, sigma):
    """Also where no prefix of a draft does: it is drafted again."""
    again = []
    usual = JobState.start_draft

    def start_draft(state, *, whole=False):
        again.append(whole)
        usual(state, whole=whole)

    monkeypatch.setattr(JobState, "start_draft", start_draft)
    infiller = make(causal, infilling=InfillingSettings(sigma=sigma))
    texts = augment(infiller, pairs())
    assert not any("\ufffd" in one.text for one in texts.values())
    assert any(again) or sigma


def test_complete_prefixes(causal):
    codec = CausalLanguageModel(*causal).codec
    ids = codec.encode("a\U0001f600b")  # an emoji is four tokens, one per byte
    assert codec.complete(ids) == [True, False, False, False, True, True]
    assert codec.complete(ids[2:]) == [False] * 4
    assert codec.complete([]) == []


def test_long_text_blocks_are_read_in_chunks(causal, monkeypatch):
    """Reading in chunks and judging in parts changes nothing."""
    infiller = make(causal)
    work = pairs()
    whole = infiller.infill(jobs_of(infiller, work))
    monkeypatch.setattr(language_model, "CHUNK", 4)
    monkeypatch.setattr(language_model, "PASS_TOKENS", 10)
    monkeypatch.setattr(language_model, "VOCABULARY_ROWS", 3)
    monkeypatch.setattr(drafting, "MASK_ENTRIES", 1)
    parts = infiller.infill(jobs_of(infiller, work))
    for one, other in zip(whole, parts, strict=True):
        assert [infill.tokens for infill in one] == [infill.tokens for infill in other]
        for a, b in zip(one, other, strict=True):
            assert a.perplexities == pytest.approx(b.perplexities, rel=1e-9)


def test_a_special_token_in_a_text_is_text(causal):
    model, tokenizer = causal
    codec = CausalLanguageModel(model, tokenizer).codec
    ids = codec.encode("a <|endoftext|> b")
    assert tokenizer.eos_token_id not in ids
    assert codec.decode(ids) == "a <|endoftext|> b"


def test_the_model_is_left_as_it_was(causal):
    model, tokenizer = causal
    model.train()
    model.requires_grad_(True)
    try:
        infiller = make((model, tokenizer), PLANNED)
        infiller.infill(jobs_of(infiller, pairs()[:2]))
        assert model.training
        assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    finally:
        model.eval()
    assert model.config._attn_implementation == "sdpa"
    assert torch.is_grad_enabled()
