"""How models are run: the language model, the sentence encoder, the entailment model."""
