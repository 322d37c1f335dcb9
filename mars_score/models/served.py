"""A language model behind a server with OpenAI's interface: vLLM, SGLang, llama.cpp, Ollama, or a hosted one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mars_score.errors import ServerError

Item = TypeVar("Item")
Value = TypeVar("Value")

KEY = "MARS_API_KEY"  # the environment variable that holds the key
AT_ONCE = 8  # requests under way, at most
TRIES = 5  # of a request that the server could not answer for now
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


def served_model(spec: str) -> ServedModel:
    """The client of a server; a process has one for each address."""
    if spec not in _clients:
        _clients[spec] = ServedModel(spec)
    return _clients[spec]


class ServedModel:
    """The client of a server; its key comes from the environment and is never shown.

    Args:
        spec: ``http://HOST:PORT/v1`` or ``https://...``, and ``#MODEL`` where the server has several models.
        wait: seconds before the second try, doubled for each further one.
    """

    def __init__(self, spec: str, wait: float = 1.0) -> None:
        import httpx  # not needed where no server is

        self.address, _, self._named = spec.partition("#")
        self.address = self.address.rstrip("/")
        self._root = self.address.removesuffix("/v1")
        self._wait = wait
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

    def __repr__(self) -> str:
        return f"ServedModel({self.address!r})"

    @cached_property
    def name(self) -> str:
        """The model's name, which stands for the model in signatures and keys; of a path its last part."""
        name = self._named or str(self._listed["id"])
        return name.rsplit("/", 1)[-1] if name.startswith("/") else name

    @cached_property
    def _listed(self) -> Mapping[str, Any]:
        models = self._ask("GET", f"{self.address}/models", take=lambda answer: list(answer["data"]))
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
        with ThreadPoolExecutor(AT_ONCE) as threads:
            futures = {threads.submit(ask, item): item for item in queue[1:]}
            try:
                for future in as_completed(list(futures)):
                    done(futures[future], future.result())
                    del futures[future]
            except ServerError:
                threads.shutdown(cancel_futures=True)  # waits for those under way
                for future, item in futures.items():
                    if not future.cancelled() and future.exception() is None:
                        done(item, future.result())
                raise
            finally:
                threads.shutdown(cancel_futures=True)

    def write(self, messages: Sequence[Mapping[str, str]], plain: str, **options: Any) -> list[tuple[str, bool]]:
        """Texts that the model writes, each in one line, and whether each ended by itself.

        Args:
            messages: to a chat model, with ``"role"`` and ``"content"``.
            plain: what the first line continues of a model that has no chat, or no template for it.
            options: ``n``, ``seed``, ``max_tokens``, ``temperature``, ``top_p``. A server that refuses ``n`` is
                asked several times, and one that refuses ``seed`` without it.

        Raises:
            ServerError: it gives no answer.
        """
        count = options.get("n", 1)
        if "n" in self._refused and count > 1:
            seed = options.get("seed", 0)
            return [
                text
                for number in range(count)
                for text in self.write(messages, plain, **{**options, "n": 1, "seed": seed * count + number})
            ]
        continues = self._continues
        asked = {"prompt": plain} if continues else {"messages": list(messages)}
        body = {"model": self._listed["id"], **asked}
        body |= {name: value for name, value in options.items() if name not in self._refused}
        refused: list[str] = []

        def is_refusal(status: int, text: str) -> bool:
            said = text.lower()
            no_chat = any(words in said for words in _NO_CHAT) or (
                status in (404, 405, 501) and "model" not in said
            )
            if no_chat and not continues and status in _UNKNOWN:
                self._continues = True
                return True
            named = [name for name in ("n", "seed") if name in body and f"'{name}'" in text.replace('"', "'")]
            refused.extend(named if status in (400, 422) else [])
            return bool(refused)

        path = "completions" if continues else "chat/completions"
        texts: list[tuple[str, bool]] | None = self._ask(
            "POST", f"{self.address}/{path}", body, choices_of, is_refusal
        )
        if texts is None:
            self._refused.update(refused)
            return self.write(messages, plain, **options)
        return texts

    def log_probabilities(self, context: str, text: str, most: int | None = None) -> tuple[list[float], bool]:
        """Of each token of a text, in nats, given a context and a space, or given begin-of-text alone.

        Args:
            context: "": none.
            text: not blank.
            most: tokens of the context's beginning that are read; None: all.

        Returns:
            The log probabilities, and whether the end of the context was left out.

        Raises:
            ServerError: the server does not give them.
        """
        if self._read is None:
            raise ServerError(f"{self.address} does not tell the log probabilities of texts")
        before = self._tokens(context) if context else []
        tokens = self._tokens(f" {text}" if context else text)
        adds_begin, begin = self._begin
        prompt = [*([begin] if adds_begin or not before else []), *before[:most]]
        return self._read(prompt, tokens), most is not None and len(before) > most

    @property
    def reads(self) -> bool:
        """Whether the server tells the log probabilities of texts; it is asked once.

        Raises:
            ServerError: it cannot be asked.
        """
        return self._read is not None

    @cached_property
    def _read(self) -> Callable[[Sequence[int], Sequence[int]], list[float]] | None:
        """The way in which the server tells log probabilities, found with a short text; None: it does not."""
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
        body = {"model": self._listed["id"], "prompt": [*before, *tokens], "echo": True, "logprobs": 1}
        logs = self._ask(
            "POST",
            f"{self.address}/completions",
            {**body, "max_tokens": 1, "temperature": 0},
            lambda answer: (answer["choices"][0]["logprobs"] or {}).get("token_logprobs") or [],
        )
        return [float(log) for log in logs[len(before) : len(before) + len(tokens)]]

    def _forced(self, before: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """As llama.cpp does: a grammar allows these tokens alone, and their log probabilities come without it."""
        grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        body = {"prompt": list(before), "grammar": grammar, "n_probs": 1, "n_predict": len(tokens)}
        logs: list[Mapping[str, Any]] = self._ask(
            "POST",
            f"{self._root}/completion",
            {**body, "post_sampling_probs": False},
            lambda answer: answer["completion_probabilities"],
        )
        return [float(log["logprob"]) for log, token in zip(logs, tokens, strict=False) if log["id"] == token]

    @cached_property
    def _begin(self) -> tuple[bool, int]:
        """Whether texts begin with begin-of-text, and this token."""
        tokens = self._tokens("", special=True)
        if tokens:
            return True, tokens[0]
        text = self._ask("GET", f"{self._root}/props", take=lambda answer: str(answer["bos_token"]))
        return False, self._tokens(text, special=True)[0]

    def _tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids, with special ones or without; llama.cpp and vLLM name the same things differently."""
        body = {"content": text, "add_special": special, "parse_special": special}
        body |= {"prompt": text, "add_special_tokens": special}
        tokens: list[int] = self._ask(
            "POST",
            f"{self._root}/tokenize",
            {**body, "model": self._listed["id"]},
            lambda answer: [int(token) for token in answer["tokens"]],
        )
        return tokens

    def _ask(
        self,
        method: str,
        url: str,
        body: Mapping[str, Any] | None = None,
        take: Callable[[Any], Any] = lambda answer: answer,
        expected: Callable[[int, str], bool] = lambda status, text: False,
    ) -> Any:
        """What ``take`` finds in the answer; None for a refusal that is ``expected``.

        What may pass is tried again: no connection, 429, 5xx, and answers that are cut.
        """
        from httpx import TransportError

        fault = ""
        for attempt in range(TRIES):
            wait = self._wait * 2**attempt
            try:
                response = self._http.request(method, url, json=body)
                if response.status_code == 200:
                    return take(response.json())
                if expected(response.status_code, response.text):
                    return None
                fault = f"{response.status_code}: {response.text[:200]}"
                if response.status_code != 429 and response.status_code < 500:
                    raise self._error(url, fault, response.status_code)
                after = response.headers.get("retry-after", "")
                wait = float(after) if after.replace(".", "", 1).isdigit() else wait
            except TransportError as error:
                fault = str(error) or type(error).__name__
            except (ValueError, KeyError, IndexError, TypeError, AttributeError):
                fault = "an answer that is cut or of another form"
            if attempt < TRIES - 1:
                time.sleep(min(wait, _LONGEST_WAIT))
        raise self._error(url, f"{fault} (tried {TRIES} times)", int(fault[:3]) if fault[:3].isdigit() else 0)

    def _error(self, url: str, fault: str, status: int) -> ServerError:
        remedy = _REMEDIES.get(status, "see whether the server is up; what was read is stored, so just go on then")
        shown = fault.replace(self._key, "***") if self._key else fault
        error = ServerError(f"{url}: {' '.join(shown.split())}; {remedy}")
        error.status = status
        return error


def choices_of(answer: Any) -> list[tuple[str, bool]]:
    """The texts of an answer, each as one line (of a continuation the first), and whether it ended by itself."""
    choices = []
    for choice in answer["choices"]:
        chats = "message" in choice
        text = str((choice["message"]["content"] if chats else choice["text"]) or "").strip()
        ended = choice.get("finish_reason") != "length"
        if not chats:
            text, line_end, _ = text.partition("\n")
            ended = ended or bool(line_end)
        choices.append((" ".join(text.split()), ended))
    return choices


_clients: dict[str, ServedModel] = {}
