"""Prompts, gates and sets of samples."""

import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.augment.sampling import prompts, samples
from mars_score.augment.sampling.gates import fault_of, tidy
from mars_score.augment.sampling.prompts import make_prompt, task_of
from mars_score.augment.sampling.sampler import Sampler
from mars_score.augment.sampling.samples import Request, Samples, draw_samples, make_request
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.models.engine.tokens import TextCodec
from mars_score.settings import SamplingSettings, resolve_settings

TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}</{{ message['role'] }}>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system message') }}{% endif %}" + TEMPLATE
)


@pytest.fixture
def chat(request):
    """A codec whose tokenizer has a chat template."""
    return TextCodec(tiny_models.chat_tokenizer(getattr(request, "param", TEMPLATE)))


def text_of(codec, prompt):
    return codec.tokenizer.decode(prompt.tokens)


@pytest.mark.parametrize(
    ("context", "limit", "task"),
    [
        ("Hi, how was your day?\nIt was fine, I went swimming.", 16, "dialogue"),
        ("She asked him.\n" + "word " * 61, 64, "story"),
        ("The mayor spoke.\n" * 40, 64, "story"),  # paragraphs of news: short lines without a question
        ("The mayor spoke.\n" * 36 + "Did he?\n" * 3, 64, "dialogue"),
        (("word " * 35 + "\n") * 11 + "Did he?\n", 250, "dialogue"),  # 387 words, turns of 32
        (("word " * 45 + "\n") * 11 + "Did he?\n", 250, "answer"),
        (("word " * 35 + "\n") * 11 + "He did.\n", 250, "story"),
        (("word " * 35 + "\n") * 12 + "Did he?\nHe did.\n", 250, "story"),  # one question in 424 words
        (("word " * 30 + "\n") * 2 + "Did he?\nHe did.\n", 250, "dialogue"),
        (("word " * 30 + "\n") * 3, 250, "story"),
        ("Who wrote the letter to the mayor?", 16, "answer"),
        ('Who sang "Where are you now?" ', 16, "answer"),
        ("这封信是谁写的\uff1f", 16, "answer"),
        ("The baker opened her shop before the first ferry left.", 64, "story"),
        ("word " * 200, 64, "summary"),
        ("word " * 120, 64, "story"),
        ("inform(name='harbour inn',near='station',price=cheap) or so it says", 16, "data"),
        ("hotel yes", 16, "data"),
        ("Tom was bored.", 16, "story"),
        ("\u201c\u4f60\u597d\u3002\u201d", 16, "story"),
        ("", 16, "data"),
    ],
)
def test_the_form_of_a_context_suggests_a_task(context, limit, task):
    assert task_of(context, ["It was the baker."], limit) == task


@pytest.mark.parametrize(
    ("references", "task"),
    [
        (["Lena asks Mr. Ortiz for a day off."], "summary"),
        (["Next week they will be short of staff.", "There is a day off for lena, says ortiz."], "summary"),
        (["Mr. Ortiz: Then take the Friday."], "dialogue"),
        (["Thank you, Lena, that is kind."], "dialogue"),
        ([], "dialogue"),
    ],
)
def test_references_about_the_speakers_of_a_transcript_ask_for_a_summary(references, task):
    transcript = "Lena: Could I have Monday off?\nOrtiz: Monday is hard.\nLena: Or another day?"
    assert task_of(transcript, references, 16) == task
    assert task_of(transcript.replace(":", ","), references, 16) == "dialogue"


def test_a_named_task_and_a_prompt_go_before_the_form():
    settings = SamplingSettings(task="summary")
    assert make_request("Who wrote it?", ["a b"], settings).task == "summary"
    own = SamplingSettings(task="Translate this: {context}")
    assert make_request("Who wrote it?", ["a b"], own).task == "Translate this: {context}"


def test_token_limits_follow_the_median_reference():
    settings = SamplingSettings()
    for references, limit in [
        (["a b"], 16),
        (["a"] * 2 + ["a " * 99], 16),
        (["a " * 20], 64),
        (["a " * 900], 128),
    ]:
        assert make_request("x", references, settings).token_limit == limit


def test_a_chat_model_answers_the_last_turn(chat):
    prompt = make_prompt(chat, "Hello there.\nHi, who are you?\nA baker.", "dialogue", 500)
    expected = (
        f"<system>{prompts.SYSTEM_OF_DIALOGUE}</system><user>Hello there.</user>"
        "<assistant>Hi, who are you?</assistant><user>A baker.</user><assistant>"
    )
    assert text_of(chat, prompt) == expected
    assert not prompt.cut


@pytest.mark.parametrize("chat", [NO_SYSTEM], indirect=True)
def test_a_template_without_system_messages(chat):
    prompt = make_prompt(chat, "Hello there.\nHi, who are you?", "dialogue", 500)
    assert text_of(chat, prompt) == f"<user>{prompts.SYSTEM_OF_DIALOGUE}\n\nHi, who are you?</user><assistant>"


@pytest.mark.parametrize("task", ["summary", "answer", "simplification", "In French: {context}"])
def test_instructions_hold_the_context(chat, task):
    plain = TextCodec(tiny_models.causal_tokenizer())
    for codec in (chat, plain):
        text = text_of(codec, make_prompt(codec, "The road is busy today.", task, 500))
        assert "The road is busy today." in text
        assert ("<user>" in text) == (codec is chat)


def test_a_base_model_gets_a_transcript():
    codec = TextCodec(tiny_models.causal_tokenizer())
    assert text_of(codec, make_prompt(codec, "Hello.\nHi.", "dialogue", 500)) == "B: Hello.\nA: Hi.\nB:"


def test_a_story_is_continued_as_it_stands(chat):
    assert text_of(chat, make_prompt(chat, " The road is busy. ", "story", 500)) == "The road is busy."
    assert len(make_prompt(chat, "", "story", 500).tokens) == 1  # begin of text


def test_special_tokens_in_a_context_are_text(chat):
    prompt = make_prompt(chat, "One<|endoftext|>\ntwo.", "dialogue", 500)
    assert chat.tokenizer.eos_token_id not in prompt.tokens


@pytest.mark.parametrize(("task", "kept"), [("summary", "first"), ("dialogue", "last"), ("story", "last")])
def test_long_contexts_are_cut(chat, monkeypatch, task, kept):
    monkeypatch.setattr(prompts, "PROMPT_TOKENS", 20)
    prompt = make_prompt(chat, "first " + "word " * 100 + "last", task, 5000)
    assert prompt.cut
    text = text_of(chat, prompt)
    assert kept in text
    assert ({"first", "last"} - {kept}).pop() not in text.replace("last message", "")


@pytest.mark.parametrize("task", ["summary", "dialogue", "story"])
def test_a_prompt_fits_the_window(chat, task):
    prompt = make_prompt(chat, "word " * 300, task, 90)
    assert 0 < len(prompt.tokens) <= 90
    assert prompt.cut


@pytest.mark.parametrize(
    ("text", "ended", "expected"),
    [
        ("\n A dog. \nA cat.", True, "A dog."),
        ("A dog ran. It was", False, "A dog ran."),
        ("Yes. " + "word " * 9, False, "Yes. " + "word " * 8 + "word"),
        ("A dog ran. It was", True, "A dog ran. It was"),
        ('"A dog ran."', True, "A dog ran."),
        ('"A dog" and "a cat"', True, '"A dog" and "a cat"'),
        ("狗跑了。然后它", False, "狗跑了。"),
        ("  \n ", True, ""),
    ],
)
def test_tidy(text, ended, expected):
    assert tidy(text, ended=ended) == expected


CONTEXT = "The ferry to the island leaves at nine in the morning and comes back late in the evening."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("It takes about an hour to get there.", None),
        ("", "empty"),
        ("...", "empty"),
        ("An hour \ufffd", "broken character"),
        ("we went  BY boat.", "duplicate"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("As an AI language model, I have no boat.", "refusal"),
        ("the boat is the boat is the boat is the boat is the boat", "repetition"),
        ("The ferry to the island leaves at nine in the morning", "copy of the context"),
        ("Паром уходит утром.", "other script"),
    ],
)
def test_faults_of_samples(text, fault):
    assert fault_of(text, CONTEXT, ["We went by boat."]) == fault


@pytest.fixture(scope="module")
def sampler():
    return Sampler(CausalLanguageModel(*tiny_models.tiny_gpt2(n_positions=160)), 1.0, 0.95)


def drawn_by(sampler, requests, **settings):
    found = {}
    draw_samples(sampler, SamplingSettings(**settings), requests, found.__setitem__)
    return found


REQUESTS = [Request(text, 16, "story") for text in ("The old harbour town wakes early.", "She took the train.")]


def test_samples_depend_on_their_request_alone(sampler, gates):
    both = drawn_by(sampler, REQUESTS, samples=3)
    assert list(drawn_by(sampler, REQUESTS[::-1], samples=3)) != list(both) or len(both) == 2
    for request in REQUESTS:
        assert drawn_by(sampler, [request], samples=3)[request] == both[request]
        assert len(set(both[request].texts)) == len(both[request].texts) <= 3
    assert drawn_by(sampler, REQUESTS, samples=3, sample_seed=1) != both


@pytest.mark.parametrize("task", ["story", "summary", "dialogue"])
def test_a_small_window_has_room_for_prompt_and_sample(task):
    small = Sampler(CausalLanguageModel(*tiny_models.tiny_gpt2(n_positions=40)), 1.0, 0.95)
    request = Request("The road is busy.\n" * 20, 128, task)
    found = drawn_by(small, [request], samples=3)[request]
    assert len(found.texts) == 3
    assert found.context_cut


def test_more_samples_begin_with_the_fewer(sampler):
    few, more = (drawn_by(sampler, REQUESTS, samples=count) for count in (2, 5))
    for request in REQUESTS:
        assert more[request].texts[:2] == few[request].texts


def test_dropped_samples_are_drawn_again_and_counted(sampler, monkeypatch):
    seen = []

    def every_other(text, context, others):
        seen.append(text)
        return "odd" if len(seen) % 2 else None

    monkeypatch.setattr(samples, "fault_of", every_other)
    found = drawn_by(sampler, REQUESTS[:1], samples=4)[REQUESTS[0]]
    # 4 drawn, 2 dropped; 2 drawn, 1 dropped; 1 drawn and dropped
    assert (len(found.texts), found.dropped) == (3, {"odd": 4})
    assert len(seen) == 7


def test_a_bounded_number_of_attempts(sampler, monkeypatch):
    monkeypatch.setattr(samples, "fault_of", lambda *_: "bad")
    found = drawn_by(sampler, REQUESTS, samples=2)
    assert found == {request: Samples((), {"bad": 2 * samples.ATTEMPTS}) for request in REQUESTS}


@pytest.fixture
def settings(encoder):
    return {
        "language_model": tiny_models.tiny_gpt2(n_positions=160),
        "encoder": encoder,
        "masked_language_model": None,
    }


CONTEXTS = ["The old harbour town wakes early in the summer.", "Who signed the letter?", "", CONTEXT]
REFERENCES = [
    ["Before the first ferry leaves, the baker opens."],
    ["1,250 people"],
    ["A road."],
    ["It takes an hour."],
]
CANDIDATES = ["The baker opens before the ferry leaves.", "Most people", "A road.", " "]


def test_other_variants_draw_no_samples():
    for variant in ("v2", "v2-lm", "v1", "paper"):
        assert resolve_settings("mini", variant).sampling.samples == 0


def test_samples_are_references_for_other_metrics(settings):
    scorer = MarsScorer("mini", store=False, samples=3, **settings)
    drawn = scorer.sample(REFERENCES, CONTEXTS)
    assert [len(texts) > 0 for texts in drawn] == [True, False, False, True]
    augmented = scorer.augment(REFERENCES, CONTEXTS)
    assert augmented == [[*references, *texts] for references, texts in zip(REFERENCES, drawn, strict=True)]


def test_a_list_of_strings_is_a_dialogue(settings, monkeypatch):
    asked = []
    monkeypatch.setattr(
        samples.ContextSampler,
        "draw",
        lambda self, requests, progress=None: asked.extend(requests) or dict.fromkeys(requests, Samples(())),
    )
    MarsScorer("mini", store=False, **settings).score(["Hi."], ["Hello."], [["Hi, who are you?", "A\nbaker."]])
    assert asked == [Request("Hi, who are you?\nA baker.", 16, "dialogue")]
