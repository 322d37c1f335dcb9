"""Misspellings of words of the premise are read as these words; what may be meant is left."""

import pytest

from mars_score.variants.judgements.spelling import corrected

PREMISE = (
    "The minister resigned on Wednesday after the government report was published. She met her friends in the "
    "library, and the company is to accommodate between twenty and thirty travellers of Brandvik."
)


MISSPELT = (
    "minsiter/minister ministter/minister minixter/minister mniister/minister reprot/report publishd/published "
    "wendesday/Wednesday libary/library betwen/between Comppany/Company"
)
RIGHT = "travelers/travelers Brandvikk/Brandvikk"  # right elsewhere; a name of its own, for all that is known


@pytest.mark.parametrize("pair", f"{MISSPELT} {RIGHT}".split())
def test_a_misspelling_is_read_as_the_word_of_the_premise(pair):
    misspelt, right = pair.split("/")
    assert corrected(f"It says {misspelt}, doesn't it?", PREMISE) == f"It says {right}, doesn't it?"


@pytest.mark.parametrize(
    ("misspelt", "right"),
    [
        ("Governmentt said so.", "Government said so."),
        ("The libary's friends resigned.", "The library's friends resigned."),
        ("It was publisehd.", "It was published."),
        ("The libary-friends met.", "The library-friends met."),
        ("inthe library", "in the library"),
        ("The minis ter resigned.", "The minister resigned."),
        ("The minis-ter resigned.", "The minister resigned."),
        ("on Wednes-day", "on Wednesday"),
        ("The rninister resigned.", "The minister resigned."),
        ("It was publ1shed.", "It was published."),
        ("The c0mpany resigned.", "The company resigned."),
    ],
)
def test_signs_and_case_stay_and_pieces_are_put_together(misspelt, right):
    premise = f"The Government is back. {PREMISE}"
    assert corrected(misspelt, premise) == right


def words_that_differ():
    """Pairs of which neither may be read as the other."""
    words = (
        "form/from were/where untied/united ally/rally casual/causal legal/illegal trail/trial "
        "martial/marital angel/angle desert/dessert costumer/customer vaping/taping fracking/tracking "
        "texting/testing mould/would draught/drought intubated/incubated underserved/undeserved "
        "quite/quiet lose/loose adopt/adapt affect/effect price/prize moral/amoral cytokine/cytosine "
        "prescribe/proscribe boat/boats walk/walks bakes/baked maker/makes human/humane titre/title "
        "sulfate/sulfite ethane/ethene blazer/blazar aminate/animate"
    )
    names = (
        "Marta/Maria Smith/Smyth Iran/Iraq Jon/John Niger/Nigeria Hanson/Hansen Brandvik/Brandvig "
        "Austria/Austrian Paris/Parisa Martin/Martina Morvale/Morvane Carla/Karla Nixon/Nimon Mike/Maike "
        "Slovakia/Slovenia Johnson/Jonson Tarrow/Tarron"
    )
    codes = (
        "ICU/ICE MRSA/MRSE USDT/USDC B12/B13 h1n1/h1nl A10/Al0 F16/F18 x86/x68 SARS/SAR covid19/covid18 "
        "iPad/iPod 2O24/2024"
    )
    others = "national/nacional house/Hause problem/problema person/persona universal/universel minister/ministre"
    unknown = "subword/subwords quiblor/quiblors tokeniser/tokenised sinologist/sinologists reflarbed/deflarbed"
    return [pair.split("/") for group in (words, names, codes, others, unknown) for pair in group.split()]


@pytest.mark.parametrize(("first", "second"), words_that_differ())
def test_words_names_and_codes_stay(first, second):
    sentence = "This is a text in which the word {} was written by us."
    assert corrected(sentence.format(first), sentence.format(second)) == sentence.format(first)
    assert corrected(sentence.format(second), sentence.format(first)) == sentence.format(second)


@pytest.mark.parametrize(
    ("hypothesis", "premise"),
    [
        ("The teh cat sat.", "The ten cats sat in the house."),
        ("See www.reprot.org and reprot@example.org.", "See the report of the government on this."),
        ("Run src/reprot.py with reprot_x.", "Run the report of the government on this."),
        ("He will re-sign, re-cover and un-ionise.", "He will resign, recover and unionise, they said."),
        ("a live show, no body", "They are alive, and nobody knows it."),
        ("The clerk is notable.", "The clerk is not able to come to the office."),
        ("Der Ministre sagte das.", "Der Minister sagte das gestern in der Hauptstadt vor vielen Leuten."),
        ("La goverment est la.", "Le government est venu hier dans la ville avec tous ses amis."),
        ("It was statd so.", "The state is as stated in the statute of the city."),
        ("", ""),
        ("!!! 12,50 \u20ac", "Nothing is written about it here."),
    ],
)
def test_words_that_may_be_meant_stay(hypothesis, premise):
    assert corrected(hypothesis, premise) == hypothesis


@pytest.mark.parametrize("run", ["a", "ab ", "a-", "a1b", "'s", "reprot ", "in the", "minis ter ", "x@", "a.b"])
def test_long_runs_are_read(run):
    assert corrected(run * 10_000, PREMISE + run * 10_000)
