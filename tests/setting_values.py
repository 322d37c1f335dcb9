"""For each setting a value that is not its default, by the group that it belongs to; settings as options."""


def as_options(settings):
    """The options of the command that give settings."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


GENERAL = {
    "task": "data",
    "clean": True,
    "language": "de",
    "max_context_tokens": 9,
    "reference_aggregation": "mean",
    "language_model": "some/other",
    "encoder": "some/other",
    "entailment_model": "some/other-nli",
    "dtype": "bfloat16",
}
PLUS = {
    "context_weight": 0.3,
    "sample_weight": 0.3,
    "likelihood_weight": 0.1,
    "repetition_penalty": 0.1,
    "support_weight": 0.3,
    "contradiction_penalty": 0.3,
    "context_words": 2.0,
    "likelihood_words": 10.0,
    "close_context": 0.5,
    "max_pmi": 2.0,
    "log_p_weight": 0.4,
    "window_words": 50,
    "word_letters": 3,
    "repetition_words": 9,
    "copied_words": 4,
    "premise_words": 50,
    "max_sentences": 10,
}
PAPER = {
    "max_mask_ratio": 0.4,
    "mask_ratio_step": 0.1,
    "pos_weights": {"ADJ": 4.0},
    "idf_corpus": ["A b."],
    "lower_words": False,
    "strip_urls_hashtags": False,
    "planner": "self",
    "plan_step": 0.03,
    "plan_iterations": 2,
    "plan_temperature": 1.0,
    "plan_norm_exponent": 1.5,
    "plan_fusion": 0.9,
    "sigma": 2,
    "q": 0.7,
}
