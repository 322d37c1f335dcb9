"""Context -> samples: texts that the language model writes given the context and no word of a reference."""
