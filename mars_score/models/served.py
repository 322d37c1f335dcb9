"""A language model behind a server with OpenAI's interface: vLLM, SGLang, llama.cpp, Ollama, or a hosted one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache, cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mars_score.errors import ServerError

Item = TypeVar("Item")
Value = TypeVar("Value")

KEY = "MARS_API_KEY"  # the environment variable that holds the key
AT_ONCE = 8  # requests under way, at most
TRIES = 5  # of a request that the server could not answer for now
WAIT = 1.0  # seconds before the second try, doubled for each further one
_TIMEOUT, _CONNECT_TIMEOUT = 300.0, 10.0  # seconds
_LONGEST_WAIT = 60.0  # seconds between two tries
_UNKNOWN = (400, 404, 405, 422, 501)  # HTTP statuses of what a server does not know
_NO_CHAT = ("chat template", "not a chat model")  # in what vLLM and OpenAI say of models without chat
_PROBE = "The cat sat on the mat."
_REMEDIES = {
    401: f"set the environment variable {KEY} to a key that the server accepts",
    403: f"set the environment variable {KEY} to a key that the server accepts",
    404: "check the address (it ends with /v1) and the name of the model behind its #",
    429: "wait, or ask the server's owner for a higher limit",
}


def is_served(spec: Any) -> bool:
    """Whether a language model is named by the address of its server."""
    return isinstance(spec, str) and spec.startswith(("http://", "https://"))


@cache
def served_model(spec: str) -> ServedModel:
    """The client of a server; a process has one for each address."""
    return ServedModel(spec)


class ServedModel:
    """The client of a server; its key comes from the environment and is never shown.

    Args:
        spec: ``http://HOST:PORT/v1`` or ``https://...``, and ``#MODEL`` where the server has several models.
    """

    def __init__(self, spec: str) -> None:
        import httpx  # not needed where no server is

        self.address, _, self._named = spec.partition("#")
        self.address = self.address.rstrip("/")
        self._root = self.address.removesuffix("/v1")
        self._refused: set[str] = set()  # options of a request that the server does not know
        self._continues = False  # whether it has no chat, and continues texts
        if "@" in urlsplit(self.address).netloc:
            raise ServerError(f"the address of a served model must hold no password: put a key into {KEY}")
        self._key = os.environ.get(KEY, "").strip()
        if not all("!" <= character <= "~" for character in self._key):
            raise ServerError(f"the key in {KEY} has white space or other characters that no key has: set it anew")
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        timeout = httpx.Timeout(_TIMEOUT, connect=_CONNECT_TIMEOUT)
        self._http = httpx.Client(timeout=timeout, headers=headers)

    @cached_property
    def name(self) -> str:
        """The model's name, which stands for the model in signatures and keys; of a path its last part."""
        name = self._named or str(self._listed["id"])
        return name.rsplit("/", 1)[-1] if name.startswith("/") else name

    @cached_property
    def _listed(self) -> Mapping[str, Any]:
        models = self._ask(f"{self.address}/models", lambda answer: list(answer["data"]))
        model = next((model for model in models if self._named in ("", model.get("id"))), None)
        if model is None:
            raise ServerError(f"{self.address} has no model {self._named or 'at all'!r}; {_REMEDIES[404]}")
        return dict(model)

    @cached_property
    def vocabulary(self) -> int | None:
        """Number of tokens, where the server tells it."""
        return (self._listed.get("meta") or {}).get("n_vocab")

    def each(
        self, ask: Callable[[Item], Value], items: Iterable[Item], done: Callable[[Item, Value], None]
    ) -> None:
        """Ask for each item, several at once; ``done`` is called in this thread as answers come in.

        The first is asked alone: it shows what the server can do. After an error no more are asked for, and those
        that are under way are still handed over before it is raised.
        """
        queue = list(items)
        for item in queue[:1]:
            done(item, ask(item))
        errors: list[ServerError] = []

        def try_to_ask(item: Item) -> tuple[Item, Value] | None:
            if not errors:
                try:
                    return item, ask(item)
                except ServerError as error:
                    errors.append(error)
            return None

        threads = ThreadPoolExecutor(AT_ONCE)
        try:
            for future in as_completed([threads.submit(try_to_ask, item) for item in queue[1:]]):
                if answer := future.result():
                    done(*answer)
        finally:
            threads.shutdown(cancel_futures=True)
        if errors:
            raise errors[0]

    def write(
        self, messages: Sequence[Mapping[str, str]], plain: str, options: Mapping[str, Any]
    ) -> list[tuple[str, bool]]:
        """Texts that the model writes, each in one line, and whether each ended by itself.

        Args:
            messages: to a chat model.
            plain: what a model without chat continues.
            options: ``n``, ``seed`` and others of OpenAI's interface; a server that refuses ``n``, or gives fewer
                texts, is asked several times, and one that refuses ``seed`` without it.
        """
        if "n" in self._refused and options["n"] > 1:
            seeds = range(options["seed"] * options["n"], (options["seed"] + 1) * options["n"])
            single = [self.write(messages, plain, {**options, "n": 1, "seed": seed}) for seed in seeds]
            return [text for texts in single for text in texts]
        asked = {"prompt": plain} if self._continues else {"messages": messages}
        path = "completions" if "prompt" in asked else "chat/completions"
        body = {name: value for name, value in {**asked, **options}.items() if name not in self._refused}
        try:
            texts = self._ask(f"{self.address}/{path}", choices_of, body)
            if "n" not in body or len(texts) >= options["n"]:
                return texts
            self._refused.add("n")
        except ServerError as error:
            if not self._adapts(error, body):
                raise
        return self.write(messages, plain, options)

    def _adapts(self, error: ServerError, body: Mapping[str, Any]) -> bool:
        """Whether the server refused chat, ``n`` or ``seed``, which it is not asked for again."""
        said = error.said.lower().replace('"', "'")
        no_page = error.status in (404, 405, 501) and "model" not in said
        no_chat = error.status in _UNKNOWN and any(words in said for words in _NO_CHAT)
        if "messages" in body and (no_page or no_chat):
            self._continues = True
            return True
        refused = {name for name in ("n", "seed") if name in body and f"'{name}'" in said}
        self._refused |= refused if error.status in (400, 422) else set()
        return bool(refused & self._refused)

    def log_probabilities(
        self, context: str, text: str, context_tokens: int | None = None
    ) -> tuple[list[float], bool]:
        """Of each token of a text, in nats, given a context and a space, or given begin-of-text alone.

        Args:
            context: "": none.
            text: not blank.
            context_tokens: of the context's beginning that are read; None: all.

        Returns:
            The log probabilities, and whether the end of the context was left out.
        """
        if self.read is None:
            raise ServerError(f"{self.address} does not tell the log probabilities of texts")
        before = self._tokens(context) if context else []
        tokens = self._tokens(f" {text}" if context else text)
        adds_begin, begin = self._begin
        prompt = [*([begin] if adds_begin or not before else []), *before[:context_tokens]]
        return self.read(prompt, tokens), len(before) > len(before[:context_tokens])

    @cached_property
    def read(self) -> Callable[[Sequence[int], Sequence[int]], list[float]] | None:
        """The way in which the server tells log probabilities, found with a short text; None: it does not.

        Raises:
            ServerError: it cannot be asked.
        """
        for read in (self._echoed, self._forced):
            try:
                tokens = self._tokens(_PROBE)
                if len(read([self._begin[1]], tokens)) == len(tokens):
                    return read
            except ServerError as error:
                if error.status not in _UNKNOWN:
                    raise
        return None

    def _echoed(self, before: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """As vLLM and SGLang do: the prompt is echoed."""
        logs = self._ask(
            f"{self.address}/completions",
            lambda answer: (answer["choices"][0]["logprobs"] or {}).get("token_logprobs") or [],
            {"prompt": [*before, *tokens], "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0},
        )
        return [float(log) for log in logs[len(before) : len(before) + len(tokens)]]

    def _forced(self, before: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """As llama.cpp does: a grammar allows these tokens alone, and their log probabilities come without it."""
        grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        options = {"grammar": grammar, "n_predict": len(tokens), "n_probs": 1, "post_sampling_probs": False}
        logs = self._ask(
            f"{self._root}/completion",
            lambda answer: answer["completion_probabilities"],
            {"prompt": list(before), **options},
        )
        return [float(log["logprob"]) for log, token in zip(logs, tokens, strict=False) if log["id"] == token]

    @cached_property
    def _begin(self) -> tuple[bool, int]:
        """Whether texts begin with begin-of-text, and this token."""
        tokens = self._tokens("", special=True)
        if tokens:
            return True, tokens[0]
        text = self._ask(f"{self._root}/props", lambda answer: str(answer["bos_token"]))
        return False, self._tokens(text, special=True)[0]

    def _tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids, with special ones or without; llama.cpp and vLLM name the same things differently."""
        body = {"content": text, "add_special": special, "parse_special": special}
        body |= {"prompt": text, "add_special_tokens": special}
        return self._ask(f"{self._root}/tokenize", lambda answer: [int(token) for token in answer["tokens"]], body)

    def _ask(self, url: str, take: Callable[[Any], Value], body: Mapping[str, Any] | None = None) -> Value:
        """What ``take`` finds in the answer to a POST for the model, or to a GET without a body.

        What may pass is tried again: no connection, 429, 5xx, and answers that are cut.

        Raises:
            ServerError: with the status and the text of the last answer.
        """
        from httpx import TransportError

        method = "GET"
        if body is not None:
            method, body = "POST", {"model": self._listed["id"], **body}
        for attempt in range(TRIES):
            status, said, wait = 0, "", WAIT * 2**attempt
            try:
                response = self._http.request(method, url, json=body)
                status, said = response.status_code, response.text
                if status == 200:
                    return take(response.json())
                fault = f"{status}: {said[:200]}"
                after = response.headers.get("retry-after", "")
                wait = float(after) if after.replace(".", "", 1).isdigit() else wait
            except TransportError as error:
                fault = str(error) or type(error).__name__
            except (ValueError, KeyError, IndexError, TypeError, AttributeError):
                fault = "an answer that is cut or of another form"
            passes = status in (0, 200, 429) or (status >= 500 and status not in _UNKNOWN)
            if not passes:
                break
            if attempt < TRIES - 1:
                time.sleep(min(wait, _LONGEST_WAIT))
        if passes:
            fault += f" (tried {TRIES} times)"
        if self._key:
            fault = fault.replace(self._key, "***")
        remedy = _REMEDIES.get(status, "see whether the server is up; what was read is stored, so just go on then")
        failure = ServerError(f"{url}: {' '.join(fault.split())}; {remedy}")
        failure.status, failure.said = status, said
        raise failure


def choices_of(answer: Any) -> list[tuple[str, bool]]:
    """The texts of an answer, each as one line (of a continuation the first), and whether it ended by itself."""
    choices = []
    for choice in answer["choices"]:
        if "message" in choice:
            text, others = choice["message"]["content"] or "", ""
        else:
            text, _, others = (choice["text"] or "").strip().partition("\n")
        ended = choice.get("finish_reason") != "length" or bool(others)
        choices.append((" ".join(text.split()), ended))
    return choices
