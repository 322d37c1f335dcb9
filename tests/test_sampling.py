"""Prompts, gates and sets of samples."""

import math
from collections import Counter

import pytest
import tiny_models
import torch

from mars_score import MarsScorer
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.codec import TextCodec
from mars_score.sampling.drawing import draw_texts
from mars_score.sampling.prompts import SYSTEM, SYSTEM_OF_DIALOGUE, make_prompt, task_of
from mars_score.sampling.samples import Request, draw_samples, fault_of, make_request, tidy
from mars_score.settings import resolve_settings
from mars_score.settings.stages import SamplingSettings

TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}</{{ message['role'] }}>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system message') }}{% endif %}" + TEMPLATE
)

CHINESE = "星期一早上，小静的汽车在上班路上抛锚了。修理厂说，零件要等到星期五才能到。她的同事都住得很远。"
CHINESE_TURNS = "小明：你今天怎么去上班？\n小红：我坐公共汽车，因为车坏了。"


@pytest.mark.parametrize(
    ("context", "limit", "task"),
    [
        ("Hi, how was your day?\nIt was fine, I went swimming.", 16, "dialogue"),
        ("She asked him.\n" + "word " * 61, 64, "story"),
        ("The mayor spoke.\n" * 40, 64, "story"),  # paragraphs of news: short lines without a question
        ("The mayor spoke.\n" * 36 + "Did he?\n" * 3, 64, "dialogue"),
        (("word " * 35 + "\n") * 11 + "Did he?\n", 250, "dialogue"),  # 387 words, turns of 32
        (("word " * 35 + "\n") * 12 + "Did he?\nHe did.\n", 250, "story"),  # one question in 424 words
        (("word " * 30 + "\n") * 2 + "Did he?\nHe did.\n", 250, "dialogue"),
        ("Who wrote the letter to the mayor?", 16, "answer"),
        ('Who sang "Where are you now?" ', 16, "answer"),
        ("The baker opened her shop before the first ferry left.", 64, "story"),
        ("word " * 200, 64, "summary"),
        ("inform(name='harbour inn',near='station',price=cheap) or so it says", 16, "data"),
        ("hotel yes", 16, "data"),
        ("\u201c\u4f60\u597d\u3002\u201d", 16, "story"),
        ("", 16, "data"),
        (CHINESE, 64, "story"),
        (CHINESE, 16, "summary"),
        (CHINESE_TURNS, 16, "dialogue"),
        ("她怎么去上班？」", 16, "answer"),
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
    assert task_of(CHINESE_TURNS, ["小红的车坏了，她告诉小明自己坐公共汽车。"], 16) == "summary"


@pytest.mark.parametrize(
    ("references", "limit"),
    [(["a b"], 16), (["a"] * 2 + ["a " * 99], 16), (["a " * 20], 64), (["a " * 900], 128), (["她坐车" * 14], 128)],
)
@pytest.mark.parametrize("task", ["summary", "Translate this: {context}"])
def test_requests(references, limit, task):
    """The median reference tells the length; a named task and a prompt go before the form of the context."""
    assert make_request("Who?", references, SamplingSettings(task=task)) == ("Who?", limit, task)


def codec_of(template):
    return TextCodec(tiny_models.chat_tokenizer(template) if template else tiny_models.causal_tokenizer())


PLAIN, CHAT = f"<system>{SYSTEM}</system>", f"<system>{SYSTEM_OF_DIALOGUE}</system>"


@pytest.mark.parametrize(
    ("template", "task", "context", "expected"),
    [
        (TEMPLATE, "dialogue", "A.\nB.\nC.", f"{CHAT}<user>A.</user><assistant>B.</assistant><user>C.</user>"),
        (NO_SYSTEM, "dialogue", "Hello there.\nHi.", f"<user>{SYSTEM_OF_DIALOGUE}\n\nHi.</user>"),
        (None, "dialogue", "Hello.\nHi.", "B: Hello.\nA: Hi.\nB:"),
        (TEMPLATE, "In French: {context}", "A<|endoftext|>road.", f"{PLAIN}<user>In French: A road.</user>"),
        (None, "In French: {context}", "A road.", "In French: A road."),
        (TEMPLATE, "answer", "Who?", f"{PLAIN}<user>Who?\n\nAnswer the question briefly.</user>"),
        (None, "answer", "Who?", "Who?\nAnswer:"),
        (None, "summary", "A road.", "A road.\n\nTL;DR:"),
        (None, "simplification", "A road.", "A road.\nIn simpler words:"),
        (None, "data", "name=x", "name=x\nIn words:"),
        (TEMPLATE, "story", "The road\x1eis busy.", "The road\n\nis busy."),
        (TEMPLATE, "story", "", "<|endoftext|>"),
    ],
)
def test_prompts(template, task, context, expected):
    """A chat model answers the last turn, a base model writes on, and a story is continued as it stands."""
    codec = codec_of(template)
    prompt, cut = make_prompt(codec, context, task, 500)
    assert codec.tokenizer.decode(prompt) == expected + "<assistant>" * ("<user>" in expected)
    assert not cut


@pytest.mark.parametrize(("task", "kept"), [("summary", "first"), ("dialogue", "last"), ("story", "last")])
def test_long_contexts_are_cut(task, kept):
    codec = codec_of(TEMPLATE)
    prompt, cut = make_prompt(codec, "first " + "word " * 500 + "last", task, 5000)
    assert cut
    assert 0 < len(make_prompt(codec, "word " * 300, task, 90)[0]) <= 90  # tokens of the window
    text = codec.tokenizer.decode(prompt).replace("last message", "")
    assert [word for word in ("first", "last") if word in text] == [kept]


@pytest.mark.parametrize(
    ("text", "ended", "expected"),
    [
        ("\n A dog. \nA cat.", True, "A dog."),
        ("A dog ran. It was", False, "A dog ran."),
        ("Yes. " + "word " * 9, False, "Yes. " + "word " * 8 + "word"),
        ("A dog ran. It was", True, "A dog ran. It was"),
        ('"A dog ran."', True, "A dog ran."),
        ('"A dog" and "a cat"', True, '"A dog" and "a cat"'),
        ("狗跑了。“好吧。”然后它", False, "狗跑了。“好吧。”"),
        ("「我坐公交车。」", False, "我坐公交车。"),
        ("वह बस से गई। फिर वह", False, "वह बस से गई।"),
        ("  \n ", True, ""),
    ],
)
def test_tidy(text, ended, expected):
    assert tidy(text, ended=ended) == expected


CONTEXT = "The ferry to the island leaves at nine in the morning and comes back late in the evening."


@pytest.mark.parametrize(
    ("text", "context", "fault"),
    [
        ("It takes about an hour to get there.", CONTEXT, None),
        ("", CONTEXT, "empty"),
        ("...", CONTEXT, "empty"),
        ("An hour \ufffd", CONTEXT, "broken character"),
        ("we went  BY boat.", CONTEXT, "duplicate"),
        ("I'm sorry, but I can't help with that.", CONTEXT, "refusal"),
        ("As an AI language model, I have no boat.", CONTEXT, "refusal"),
        ("the boat is the boat is the boat is the boat is the boat", CONTEXT, "repetition"),
        ("The ferry to the island leaves at nine in the morning", CONTEXT, "copy of the context"),
        ("Паром уходит утром.", CONTEXT, "other script"),
        ("坐公交车坐公交车坐公交车坐公交车", CHINESE, "repetition"),
        ("零件要等到星期五才能到", CHINESE, "copy of the context"),
        ("She took the bus.", CHINESE, "other script"),
        ("彼女はバスで行きました。", "東京駅前広場、午前九時、雨天決行。", None),
    ],
)
def test_faults_of_samples(text, context, fault):
    assert fault_of(text, context, ["We went by boat."]) == fault


PROMPT = [1, 5, 7]
KEYS = [bytes([number]) * 16 for number in range(7)]


@pytest.fixture(scope="module", params=[tiny_models.tiny_gpt2, tiny_models.tiny_llama])
def model(request):
    return CausalLanguageModel(*request.param())


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.6), (2.0, 0.9)])
def test_first_tokens_follow_the_nucleus(model, temperature, top_p):
    """Their frequencies are the probabilities of a softmax, cut to the nucleus by a loop."""
    count, tokenizer = 4000, model.codec.tokenizer
    keys = [number.to_bytes(8, "little") for number in range(count)]
    settings = SamplingSettings(sample_temperature=temperature, sample_top_p=top_p)
    drawn = Counter(text for text, _ in draw_texts(model, PROMPT, keys, 1, settings))
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor([PROMPT])).logits[0, -1, : len(tokenizer)] / temperature
    ordinary = [token for token in range(len(tokenizer)) if token not in tokenizer.all_special_ids]
    ends = {tokenizer.eos_token_id}
    allowed = torch.tensor([*ordinary, *ends])
    probabilities = dict(zip(allowed.tolist(), torch.softmax(logits[allowed], -1).tolist(), strict=True))
    expected, reached = Counter(), 0.0
    for token in sorted(probabilities, key=lambda token: -probabilities[token]):
        if reached >= top_p:
            break
        reached += probabilities[token]
        expected["" if token in ends else model.codec.decode([token])] += probabilities[token]
    assert drawn.keys() <= expected.keys()
    for text, probability in expected.items():
        share = probability / reached
        assert drawn[text] / count == pytest.approx(share, abs=4.5 * math.sqrt(share / count) + 1e-3)


def test_a_text_depends_on_its_prompt_and_key_alone(model, monkeypatch):
    """Not on the other keys, their order, how many memory has room for, or torch's random state."""
    torch.manual_seed(1)
    state = torch.get_rng_state()
    texts = draw_texts(model, PROMPT, KEYS, 12, SamplingSettings())
    assert torch.equal(torch.get_rng_state(), state)
    assert len(set(texts)) == len(KEYS)
    torch.manual_seed(2)
    assert draw_texts(model, PROMPT, KEYS[3::-1], 12, SamplingSettings()) == texts[3::-1]
    [(longer, _)] = draw_texts(model, PROMPT, KEYS[:1], 20, SamplingSettings())
    assert longer.startswith(texts[0][0].rstrip("\ufffd"))
    generate = model.model.generate

    def limited(prompts, **options):
        if len(prompts) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(prompts, **options)

    monkeypatch.setattr(model.model, "generate", limited)
    assert draw_texts(model, PROMPT, KEYS, 12, SamplingSettings()) == texts


def test_texts_end_with_a_stop_token_or_their_first_line(model):
    drawn = draw_texts(model, PROMPT, [bytes([number]) * 8 for number in range(60)], 60, SamplingSettings())
    assert max(len(text.lstrip().splitlines()) for text, _ in drawn) <= 2
    assert 0 < sum(ended for _, ended in drawn) < len(drawn)
    assert not any("<|endoftext|>" in text for text, _ in drawn)
    assert min(len(model.codec.encode(text)) for text, ended in drawn if not ended) > 30


@pytest.fixture(scope="module")
def writer():
    return CausalLanguageModel(*tiny_models.tiny_writer())


def drawn_by(model, request, **settings):
    return draw_samples(model, request, resolve_settings("mini", variant="plus", **settings))


@pytest.mark.parametrize("context", ["The old harbour town wakes early.", "She took the train."])
def test_the_first_samples_are_the_same_where_more_are_drawn(writer, context):
    request = Request(context, 16, "story")
    texts = drawn_by(writer, request, sample_count=3).texts
    assert len(set(texts)) == 3
    assert drawn_by(writer, request, sample_count=5).texts[:3] == texts
    assert not set(drawn_by(writer, request, sample_count=3, sample_seed=1).texts) & set(texts)


@pytest.mark.parametrize("task", ["story", "summary", "dialogue"])
def test_a_small_window_has_room_for_prompt_and_sample(task):
    small = CausalLanguageModel(*tiny_models.tiny_writer(n_positions=40))
    texts, context_cut = drawn_by(small, Request("The road is busy.\n" * 20, 128, task), sample_count=3)
    assert len(texts) == 3
    assert context_cut


@pytest.mark.parametrize(
    ("context", "count"), [("The old harbour town wakes early.", 1), ("Паром уходит утром.", 0)]
)
def test_fewer_samples_where_too_many_are_dropped(writer, context, count):
    """Near temperature 0 all samples of a context are the same, and none is in the script of another context."""
    samples = drawn_by(writer, Request(context, 5, "story"), sample_count=4, sample_temperature=1e-4)
    assert len(samples.texts) == count


CONTEXTS = ["The old harbour town wakes early in the summer.", "Who signed the letter?", "", CONTEXT]
REFERENCES = [["Before the first ferry leaves, the baker opens."], ["1,250 people"], ["A road."], ["It is late."]]


def test_samples_are_references_for_other_metrics(encoder):
    models = {"language_model": tiny_models.tiny_writer(), "encoder": encoder}
    scorer = MarsScorer("mini", variant="plus", store=False, sample_count=3, **models)
    augmented = scorer.augment(REFERENCES, CONTEXTS)
    assert [texts[: len(human)] for texts, human in zip(augmented, REFERENCES, strict=True)] == REFERENCES
    assert [len(texts) > 1 for texts in augmented] == [True, False, False, True]
    turns = ["Hi, who are you?", "A\nbaker."]  # a list of strings is a dialogue
    request = Request("Hi, who are you?\nA baker.", 16, "dialogue")
    model = CausalLanguageModel(*models["language_model"])
    assert scorer.augment(["Hello."], [turns]) == [["Hello.", *drawn_by(model, request, sample_count=3).texts]]
