"""Learned heads: scores learned from human ratings, on top of MARS's own terms or from the texts alone."""

from __future__ import annotations

from typing import Literal, get_args

# Kinds of heads -> module and class.
KINDS = {"terms": "terms.TermsHead", "encoder": "encoder.EncoderHead", "ls": "contrastive.LsHead"}
Objective = Literal["ratings", "pretrain", "contrastive"]  # what an encoder is trained on
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
PAIRS = 1_500  # synthetic; 5,000 gave the same mean agreement and harmed more kinds of text (docs/learning.md)
SHARE = 0.2  # of their texts that the language model reads; with 1 it takes two thirds of the time or more
