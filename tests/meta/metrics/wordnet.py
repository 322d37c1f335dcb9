"""A WordNet of a few nouns, in the format of the real one, which takes seconds to read."""

SYNSETS = [("car", "auto", "automobile"), ("man", "adult_male"), ("dog",), ("cat",)]


def write_wordnet(folder):
    """Write the files of the reader; returns the folder."""
    folder.mkdir()
    data, index = "  1 A header, which is no synset.\n", ""
    for lemmas in SYNSETS:
        words = " ".join(f"{lemma} 0" for lemma in lemmas)
        index += "".join(f"{lemma} n 1 0 1 0 {len(data):08}\n" for lemma in lemmas)
        data += f"{len(data):08} 06 n {len(lemmas):02x} {words} 000 | a meaning\n"
    for pos in ("noun", "verb", "adj", "adv"):
        (folder / f"data.{pos}").write_text(data if pos == "noun" else "")
        (folder / f"index.{pos}").write_text(index if pos == "noun" else "")
        (folder / f"{pos}.exc").write_text("men man\n" if pos == "noun" else "")
    return folder
