"""Infilling in its plain form, for comparison.

One job at a time, its prompt read once, transformers' own cache, autograd through the perturbed keys and
values, one token after the other; each prefix of a draft is judged by a forward pass of its own after the
cache. It chooses the engine's tokens and finds its perplexities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import DynamicCache

from mars_score.augment.infilling.jobs import Infill, Job
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.models.engine.tokens import token_kind
from mars_score.models.torch_modes import exclusive, ordinary_mode
from mars_score.settings import InfillingSettings, PlanningSettings

States = list[Tensor]  # keys and values of the first layer, of the second, ...

EPSILON = 1e-15


class SequentialInfiller:
    """Stands in for :class:`mars_score.augment.infilling.engine.CausalInfiller`.

    Args:
        model: the language model, in float32 or float64.
        planning: the planner's settings.
        infilling: sigma.
    """

    def __init__(
        self, model: CausalLanguageModel, planning: PlanningSettings, infilling: InfillingSettings
    ) -> None:
        self.model = model.model
        self.device = model.device
        self.planning = planning
        self.sigma = infilling.sigma
        self._codec = model.codec
        self._allowed = torch.from_numpy(model.codec.allowed(model.vocabulary)).to(model.device)

    def infill(self, jobs: Sequence[Job]) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks."""
        with ordinary_mode(), exclusive(self.model):
            return [tuple(self._infill(job)) for job in jobs]

    def _infill(self, job: Job) -> list[Infill]:
        start = (*job.prompt, *job.lead)
        logits, past = self._feed(start[:-1], [], keep=max(1, len(job.lead)))
        pending = start[-1]  # written, but not in the cache
        surprise = float(_surprisal(logits, job.lead).sum()) if job.lead else 0.0
        count = len(job.lead)
        infills = []
        for index, blank in enumerate(job.blanks):
            for whole in (False, True):  # again with tokens of whole characters if no prefix ends with one
                draft, drafted = self._draft(job, index, pending, past, whole=whole)
                complete = self._codec.complete(draft)
                if any(complete):
                    break
            totals, caches = [], []
            for length in range(1, len(draft) + 1):
                if not blank.after:  # open-ended: judged on what is written and the prefix
                    totals.append(surprise + sum(drafted[:length]))
                    continue
                written = (*draft[:length], *blank.after)
                logits, cache = self._feed((pending, *written[:-1]), past, keep=len(written))
                totals.append(surprise + float(_surprisal(logits, written).sum()))
                caches.append(cache)
            counts = [count + length + len(blank.after) for length in range(1, len(draft) + 1)]
            means = [total / number for total, number in zip(totals, counts, strict=True)]
            best = min((at for at, whole in enumerate(complete) if whole), key=means.__getitem__)
            infills.append(Infill(tuple(draft[: best + 1]), tuple(math.exp(mean) for mean in means)))
            if blank.after:
                past, pending, surprise, count = caches[best], blank.after[-1], totals[best], counts[best]
        return infills

    def _draft(
        self, job: Job, index: int, pending: int, past: States, *, whole: bool
    ) -> tuple[list[int], list[float]]:
        """The b + sigma greedy tokens for a blank, and their surprisal."""
        blank, future = job.blanks[index], list(job.future(index))
        draft: list[int] = []
        surprises: list[float] = []
        for _ in range(blank.length + self.sigma):
            token = draft[-1] if draft else pending
            if future and self.planning.planner == "self":
                plain, scores, past = self._planned_step(token, past, future)
            else:
                plain, past = self._feed((token,), past)
                scores = plain
            kind = token_kind(
                first=not draft, begins_word=blank.begins_word, line_breaks=job.line_breaks, whole=whole
            )
            draft.append(int(scores[0].masked_fill(~self._allowed[kind], -torch.inf).argmax()))
            surprises.append(float(_surprisal(plain, draft[-1:])))
        return draft, surprises

    def _planned_step(self, token: int, past: States, future: list[int]) -> tuple[Tensor, Tensor, States]:
        """Plain logits, scores from the cache moved towards the future (Eq. 3-6), and the plain cache."""
        settings = self.planning
        moved = past
        for _ in range(settings.plan_iterations):
            leaves = [state.detach().requires_grad_() for state in moved]
            with torch.enable_grad():
                logits, cache = self._feed((token,), leaves)
                reward = torch.log_softmax(logits[0] / settings.plan_temperature, -1)[future].mean()
                gradients = torch.autograd.grad(reward, leaves)
            if moved is past:
                plain, plain_cache = logits.detach(), [state.detach() for state in cache]
            moved = []
            for layer in range(0, len(leaves), 2):
                norm = torch.hypot(gradients[layer].norm(), gradients[layer + 1].norm())
                step = settings.plan_step / (norm**settings.plan_norm_exponent + EPSILON)
                moved += [leaves[place].detach() + step * gradients[place] for place in (layer, layer + 1)]
        logits, _ = self._feed((token,), moved)
        scores = torch.log_softmax(logits / settings.plan_temperature, -1)
        fusion = settings.plan_fusion
        if fusion < 1:
            scores = fusion * scores + (1 - fusion) * torch.log_softmax(plain, -1)
        return plain, scores, plain_cache

    def _feed(self, tokens: Sequence[int], past: States, keep: int = 1) -> tuple[Tensor, States]:
        """Feed tokens after a cache: the logits of the last ``keep`` of them, and the longer cache."""
        cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)) or None)
        ids = torch.tensor([tokens], device=self.device)
        logits = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=keep).logits[0]
        return logits, [state for layer in cache.layers for state in (layer.keys, layer.values)]


def _surprisal(logits: Tensor, tokens: Sequence[int]) -> Tensor:
    """-log p of each token under the logits before it, in nats."""
    targets = torch.tensor(tokens, device=logits.device)[:, None]
    return -torch.log_softmax(logits, -1).gather(1, targets)[:, 0].double()
