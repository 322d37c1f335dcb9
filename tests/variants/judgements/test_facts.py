"""Numbers and names that a sentence adds to its sources are told; those of a source in another form are not."""

import pytest

from mars_score.language import PipelineMissingError, Tagger
from mars_score.variants.judgements.facts import missing_facts

TAGGER = Tagger()


def added(sentence, *sources, tagger=TAGGER):
    return missing_facts([(sentence, sources)], tagger)[sentence, sources]


@pytest.mark.parametrize(
    ("sentence", "source", "facts"),
    [
        ("Yesterday the group met Anna Bianchi.", "The group met Anna Rossi.", ("Bianchi",)),
        ("The talks with NASA failed.", "The talks with the European Space Agency failed.", ("NASA",)),
        ("It was said by Marta Lindqvist.", "It was said by Maria Lindqvist.", ("Marta",)),
        ("The fine is $1.2 billion.", "The fine is $1.2 million.", ("$1.2 billion",)),
        ("The trail is 2 miles long.", "The trail is 2 km long.", ("2 miles",)),
        ("About 30,000 people came.", "About 3,000 people came.", ("30,000",)),
        ("The war ended in 1949.", "The war lasted from 1939 to 1945.", ("1949",)),
        ("It lasted 38 minutes.", "Bus 38 goes there.", ("38 minutes",)),
        ("They gave 39 t/ha.", "Marlo gave 31 tonnes per hectare and Pikeln 38.", ("39 t/ha",)),
        ("She pays 23 pounds a week.", "She pays \u00a322 a week.", ("23 pounds",)),
        ("Yesterday Tarrow Rvrs won.", "Tarrow United won.", ("Rvrs",)),
        ("It takes an hour.", "It takes 20 minutes.", ("an hour",)),
        ("They meet on Friday in Oslo.", "They meet on Monday in Bergen.", ("Friday", "Oslo")),
    ],
)
def test_what_no_source_has_is_told_in_order(sentence, source, facts):
    assert added(sentence, source) == facts


SAID = {
    "Jose Muller went to Sao Paulo and Zurich.": "Jos\u00e9 M\u00fcller went to S\u00e3o Paulo and Z\u00fcrich.",
    "Jose Mueller went to Zuerich.": "Jos\u00e9 M\u00fcller went to Z\u00fcrich.",
    "They saw Germany's chancellor, the Germans say.": "They saw the German chancellor.",
    "He moved to California.": "Californian firms hired him.",
    "The embassy of France said so.": "The French embassy said so.",
    "The U.S. and the E.U. signed it.": "The United States and the European Union signed it.",
    "The USA and the UK signed it.": "The United States and the United Kingdom signed it.",
    "The United States and the European Union signed it.": "The US and the EU signed it.",
    "It was launched by NASA.": "It was launched by the National Aeronautics and Space Administration.",
    "It uses LRU here.": "It drops the least recently used entry.",
    "Yesterday Doctor Smith and Prof. Wu came.": "Dr. Smith and Professor Wu came.",
    "He met Mr. Jean-Luc Picard.": "He met Jean Luc Picard.",
    "They wrote to Lindqvistt again.": "They wrote to Lindqvist.",
    "It was on Tues. in Sept. 2020.": "It was on Tuesday in September 2020.",
    "It rained on May 1.": "it rained on may 1.",
    "About 200 people came.": "There were 203 people.",
    "Three players were hurt, the second one badly.": "Ada, Bo and Cy were hurt, Bo badly.",
    "Half of them left.": "Of the ten, five left.",
    "It cost 70 euros in all.": "The book cost 30 euros, the bag 40 euros.",
    "It lasted 35 minutes.": "It began at 9:05 and ended at 9:40.",
    "They meet at 7 pm.": "Shall we say 7?",
    "It is open from Monday to Friday.": "It is open every day.",
    "There were twenty-five machines.": "There were twenty - five machines.",
    "Pikeln gave 38 t/ha.": "Marlo gave 31 tonnes per hectare and Pikeln 38.",
    "She pays 22 pounds a week.": "She pays \u00a322 a week.",
    "Yesterday Tarrow Utd won.": "Tarrow United won.",
    "A day out is planned.": "The class will visit a fort.",
    "Friends said so.": "",
    "MEETING IN ROME WITH ANNA": "",
    "The Quiet Man of Rome": "",
    'It ended: Anna left. Bo stayed. "Cy stayed."': "",
    "1. They left.": "",
}


@pytest.mark.parametrize(("sentence", "source"), SAID.items())
def test_what_a_source_has_in_any_form_is_not_told(sentence, source):
    assert added(sentence, source) == ()


def test_any_of_several_sources_may_have_a_fact():
    assert added("In Rome he paid 500 euros to Anna.", "He lives in Rome.", "He paid Anna 500 euros.") == ()
    assert added("In Rome he paid 500 euros to Anna.", "He lives in Rome.") == ("500 euros", "Anna")


def test_without_a_tagger_or_its_pipeline_numbers_are_read_alone():
    class Missing(Tagger):
        def tag(self, texts):
            raise PipelineMissingError

    sentence, source = "In Hungary he paid 500 euros.", "In Germany he paid 300 euros."
    assert added(sentence, source, tagger=None) == added(sentence, source, tagger=Missing()) == ("500 euros",)
    assert added(sentence, source) == ("Hungary", "500 euros")


def test_many_sentences_are_tagged_at_once(monkeypatch):
    calls = []
    tag = Tagger.tag
    monkeypatch.setattr(Tagger, "tag", lambda self, texts: calls.append(1) or tag(self, texts))
    asked = [(f"He saw the {word} in Rome.", (source,)) for word in ("cat", "dog") for source in ("Bonn", "Rome")]
    found = missing_facts(asked, TAGGER)
    assert [found[one] for one in asked] == [("Rome",), (), ("Rome",), ()]
    assert len(calls) <= 2


@pytest.mark.parametrize(
    "run", ["a", "A", "1", "1,", "A. ", "1 May ", "U.S.", "12:30 ", "Ab Cd ", "twenty - ", "It is 3 km.\n"]
)
def test_long_runs_are_read(run):
    text = run * (20_000 // len(run))
    missing_facts([(text, (text,))], None)


def test_a_word_of_many_equal_letters_is_looked_up_at_once():
    """With a regular expression of its letters it would take years."""
    name, source = f"Bbc{'b' * 30}z", f"bbbc{'b' * 60}"
    assert added(f"It was said by Mr {name}.", source) == (name,)
