"""Rows that are refused: a column, what stands in its second row, and what the message says behind the place."""

ASK, REPLY, BRIEF = ({"role": role, "content": "Hello."} for role in ("user", "assistant", "system"))
PASSAGES = r'must be a string, got dict .* retrieved passages are given as \{"passages": \["...", "..."\]\}'

BAD_ROWS = {
    "no candidate": ("prediction", None, "must be a string, got NoneType"),
    "a number as candidate": ("prediction", 3, "must be a string, got int"),
    "a number among candidates": ("prediction", ["b", 3], "must be a string, got (int|list)"),
    "no reference": ("reference", None, "must be a string, got NoneType"),
    "an empty list of references": ("reference", [], "is an empty list; give at least one"),
    "a blank reference": ("reference", " ", "holds a blank reference"),
    "a blank reference among others": ("reference", ["b", "\u200b"], "holds a blank reference"),
    "a number among references": ("reference", ["b", 3], "must be a string, got int"),
    "a number as context": ("context", 3, "must be a string, got int"),
    "the assistant last": ("context", [ASK, REPLY], "ends with a message of the assistant; the candidate answers"),
    "the system alone": ("context", [BRIEF], "ends with a message of the system"),
    "two messages of the user": (
        "context",
        [ASK, ASK],
        r"\[1\] is a second message of the user in sequence; join",
    ),
    "the system in between": (
        "context",
        [ASK, BRIEF],
        r"\[1\] is a message of the system, which must be the first",
    ),
    "an unknown role": ("context", [{**ASK, "role": "x"}], r"\[0\]\[\"role\"\] must be one of .*, got 'x'"),
    "no role": ("context", [{"content": "x"}], r"\[0\]\[\"role\"\] must be one of .*, got None"),
    "no content": ("context", [{"role": "user"}], r"\[0\]\[\"content\"\] must be a string, got NoneType"),
    "a blank message": (
        "context",
        [{**ASK, "content": " "}],
        r"\[0\]\[\"content\"\] is blank; leave the message out",
    ),
    "messages and a text": ("context", [ASK, "text"], "must be a string, got dict"),
    "a number as passages": ("context", {"passages": 5}, PASSAGES),
    "a text as passages": ("context", {"passages": "text"}, PASSAGES),
    "no passages": ("context", {"passages": []}, "holds no passages; give at least one"),
    "a blank passage": ("context", {"passages": ["a", " "]}, r'\["passages"\]\[1\] is blank; leave it out'),
    "a number among passages": (
        "context",
        {"passages": ["a", 3]},
        r'\["passages"\]\[1\] must be a string, got int',
    ),
    "passages and a question": ("context", {"passages": ["a"], "question": "b"}, PASSAGES),
    "a number as sample": ("sample", 3, "must be a string, got int"),
    "a blank sample": ("sample", ["b", " "], "holds a blank sample; leave it out"),
    "a number among samples": ("sample", ["b", 3], "must be a string, got int"),
    "another dict": ("context", {"text": "b"}, PASSAGES),
}
