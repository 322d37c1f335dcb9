"""Quantities of texts as values: equal in another notation, never for another value."""

import pytest

from mars_score.variants.judgements.conflicts import find_conflict
from mars_score.variants.judgements.quantities import conflicts, equal, in_notation_of, is_said, read_quantities

SAME = [  # each line is one quantity
    "34 | thirty-four | thirty four | 34.0",
    "3,000 | 3000 | three thousand | 3k | 3.000 | 3 000 | 3\u202f000 | 3'000",
    "8.1bn | 8,100 million | 8.1 billion | 8100000000",
    "two and a half million | 2.5 million | 2,500,000 | 2.5mn",
    "a dozen | 12 | twelve | one dozen",
    "half a dozen | 6 | six",
    "three quarters of a million | 750,000 | 0.75 million | seven hundred and fifty thousand",
    "twenty-two hundred | 2,200 | two thousand two hundred",
    "25% | 25 percent | 25 per cent | 25 pct | a quarter | one in four | 1 in 4 | 0.25 | one quarter",
    "three fifths | 60% | six out of ten | 60 percent",
    "one eighth | 12.5 per cent | one in eight | an eighth.",
    "two-thirds | two thirds | 2/3",
    "half of it | 50% of it | one half of it",
    "$1.2 million | USD 1.2m | 1.2 million dollars | $1,200,000 | US$1.2M | 1.2m US dollars",
    "\u20ac49.90 | 49.90 euros | EUR 49.90 | 49,90 \u20ac | 49.90 EUR | 49 euros and 90 cents",
    "\u00a3385 | GBP 385 | three hundred and eighty-five pounds | 385 pounds",
    "$7.50 | seven dollars fifty | 7 dollars and 50 cents | seven and a half dollars",
    "2 km | 2,000 m | 1.24 miles | two kilometres | 2 kilometers | 2 KM",
    "500 g | half a kilo | 0.5 kg | 500 grams | \u00bd kg | 500g",
    ".5 mg | 0.5 mg | 500 \u00b5g | 500 \u03bcg | 500 mcg | 500 micrograms",
    "\u00bd cup | 1/2 cup | half a cup | 0.5 cups",
    "1 \u00bd cups | 1\u00bd cups | 1 1/2 cups | one and a half cups",
    "100 \u00b0C | 212 \u00b0F | one hundred degrees Celsius | 100 degrees centigrade | 212F",
    "-10 \u00b0C | minus 10 \u00b0C | \u221210 \u00b0C | ten degrees Celsius below zero | 14 \u00b0F",
    "90 minutes | 1.5 hours | an hour and a half | one and a half hours | 1 h 30 min | 1 hour and 30 minutes",
    "two years | 24 months | 2 yrs | a couple of years",
    "a year and a half | 18 months | 1.5 years",
    "36 hours | a day and a half | 1.5 days",
    "six weeks | 42 days | three fortnights",
    "three decades | thirty years | 30 years",
    "45 seconds | three quarters of a minute | 45 s | 0.75 minutes",
    "90 km/h | 90 kph | ninety kilometres an hour | 25 metres per second | 25 m/s | 90 kilometers per hour",
    "60 mph | 60 miles per hour | a mile a minute | sixty miles an hour",
    "5 GB | 5 gigabytes | 5,000 MB",
    "100 m\u00b2 | 100 square metres | 100 m2 | 100 sq m",
    "six feet two | six feet two inches | 74 inches | 188 cm",
    "21:40 | 9:40 p.m. | 9:40pm | 9.40 p.m. | twenty to ten in the evening | 9:40 PM",
    "noon | 12 p.m. | 12:00 | midday | 12 noon",
    "16:15 | a quarter past four in the afternoon | 4.15 p.m.",
    "half past five in the morning | 5:30 a.m. | 05:30 | 5.30 in the morning",
    "3 May 2024 | May 3, 2024 | 2024-05-03 | 3.5.2024 | 3/5/24 | 3rd May 2024 | the third of May 2024 | 5/3/24",
    "7 Nov. | November 7 | the seventh of November | 7th November",
    "1974 | nineteen seventy-four | in 1974",
    "in '74 | in 1974 | in nineteen seventy-four",
    "the 1960s | the nineteen-sixties | between 1960 and 1969 | the '60s",
    "the 19th century | the nineteenth century",
    "1939-45 | 1939 to 1945 | 1939\u20131945 | from 1939 to 1945",
    "on Tuesday | on Tues. | on Tue. | on TUESDAY",
    "3rd place | third place",
    "the twenty-third day | the 23rd day",
    "3 to 5 days | 3-5 days | 3\u20135 days | three to five days | between three and five days | 3 or 5 days",
    "0 \u00b0C | 32 \u00b0F | 0 degrees Celsius",
    "18:45 | at 1845 hours | 6:45 p.m.",
    "1.8 m | 1 metre 80 | 180 cm | 1.80 metres",
    "48 hours | 2 full days | two days",
    "a score of | 20 | twenty",
    "27-24 | 27:24 | twenty-seven to twenty-four",
    "1:50,000 | one to fifty thousand",
]
DIFFERENT = [
    ("5 \u2030", "5"), ("5 \u2030", "5%"), ("5%", "5"), ("3:1", "3 1"), ("3:1", "1:3"),
    ("-1 \u00b0C", "1 \u00b0C"), ("1/2 cup", "12 cups"), ("5 \u00b5g", "5 mg"), (".5 mg", "5 mg"),
    ("8.1 billion", "8.1 million"), ("2 km", "2 miles"), ("2,000 m", "20,000 m"), ("21:40", "9:40 a.m."),
    ("25%", "52%"), ("one in four", "one in five"), ("$5", "\u20ac5"), ("12 noon", "midnight"),
    ("3 May 2024", "3 June 2024"), ("3 May 2024", "4 May 2024"), ("3rd", "13th"),
    ("3 to 5 days", "3 to 15 days"), ("90 minutes", "90 seconds"), ("an hour and a half", "half an hour"),
    ("12.5 kg", "12.5 pounds"), ("212 \u00b0F", "212 \u00b0C"), ("Tuesday", "Thursday"), ("1960s", "1970s"),
    ("16 per cent", "60%"), ("5 mW", "5 MW"), ("a dozen", "a score"), ("2.5 million", "a quarter of a million"),
    ("2 miles", "3 km"), ("two and a half hours", "90 minutes"), ("1974", "1947"),
    ("5 percentage points", "5 percent"), ("two thirds", "three halves"), ("38", "83"), ("1,250 g", "12.5 kg"),
    ("3 hours", "3 days"), ("\u00a3385", "385 dollars"),
]  # fmt: skip


def one(text):
    """The single quantity of a text."""
    (found,) = read_quantities(text)
    return found


@pytest.mark.parametrize("group", SAME)
def test_a_quantity_is_equal_in_every_notation_and_takes_that_of_a_premise(group):
    first, *others = group.split(" | ")
    for other in others:
        assert equal(one(first), one(other)), other
        assert is_said(one(first), [one(other)])
        assert not conflicts(one(first), [one(other)])
        taken = in_notation_of(f"We saw {other} there.", f"It was {first} then.")
        assert equal(one(taken), one(first))
        assert in_notation_of(taken, f"It was {first} then.") == taken


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_another_value_is_never_equal(a, b):
    assert not any(equal(x, y) for x in read_quantities(a) for y in read_quantities(b))


NO_QUANTITY = [
    "version 2.10.3", "v1.10", "one of them", "COVID-19", "C3PO", "gate B17", "code E-19", "#42",
    "a third party", "first of all", "Call 555-0134.", "Call 0555 014 276.", "Call +49 30 1234567.",
    "See https://example.com/2024/5.", "Mail bob5@acme.com.", "It may rain.", "They march on.",
    "Profit was (5) million.", "5 \u00b1 1", "See [12].", "1. Berlin", "2) Paris", "second-hand cars",
    "a quarter point", "They like Windows 10.", "x=-1", "the second to last", "Section 5 applies.", "page 12",
    "No. 10 Downing Street", "24/7", "a man and a half-brother", "the first snow", "no one came",
    "a pair of trousers", "the sun rose", "a week's work is hard to mar", "10^6", "on 28/2", "on 12/05", "3\u00b2",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_QUANTITY)
def test_what_is_no_quantity_is_left(text):
    assert read_quantities(text) == ()


SPANS = [
    ("It costs $1.2 million in all.", ["$1.2 million"]),
    ("Of thirty-four hens, one in four laid two eggs.", ["thirty-four", "one in four", "two"]),
    ("He left on 3 May 2024 at 9:40 p.m. for an hour.", ["3 May 2024", "9:40 p.m.", "an hour"]),
    ("Between three and five days, not 2\u20133.", ["Between three and five days", "2\u20133"]),
    ("Twice a day, 5 dollars an hour.", ["Twice", "5 dollars"]),
    ("A carrot of 1.8 m from the crown, 11.5m viewers.", ["1.8 m", "11.5m"]),
    ("In The Sun. Then it ran 1884\u201385.", ["1884\u201385"]),
    ("From March 3, 2004 to 5 May, a week-and-a-half", ["March 3, 2004", "5 May", "a week-and-a-half"]),
    ("The second series, a surface of 10,000 K, 4 x 110 in 132 in", ["second", "10,000", "4", "110", "132"]),
    ("THE TREASURER WON 52.5% OF IT.", ["52.5%"]),
    ("Two dogs.\nThree cats. Four cows", ["Two", "Three", "Four"]),
]


@pytest.mark.parametrize(("text", "expected"), SPANS)
def test_spans_stand_in_the_text(text, expected):
    found = read_quantities(text)
    assert [quantity.text for quantity in found] == expected
    assert [text[quantity.start : quantity.end] for quantity in found] == expected


BOUNDS = [
    ("at least 8 kg", ">="), ("at most 8 kg", "<="), ("more than 8 kg", ">"),
    ("not more than 8 kg", "<="), ("up to 8 kg", "<="), ("may not weigh more than 8 kg", "<="),
    ("less than 8 kg", "<"), ("no less than 8 kg", ">="), ("8 kg or less", "<="), ("8 kg or more", ">="),
    ("18 or older", ">="), ("18 and over", ">="), ("18+", ">="), ("under 18", "<"), ("over 18", ">"),
    ("nobody under 18", ">="), ("not under 18", ">="), ("fewer than ten people", "<"),
    ("not even ten people", "<"), ("about 200", "~"), ("approx. 200", "~"), ("~5 GB", "~"), ("some 200", "~"),
    ("the limit for luggage is 8 kg", "<="), ("the minimum age is 18", ">="), ("a minimum of 8 kg", ">="),
    ("within two weeks", "<="), ("no later than 9 p.m.", "<="), ("by Friday", "<="), ("nearly 30 km", "<"),
    ("just over a thousand", ">"), ("over two days", ""), ("8 kg", ""), ("exactly 8 kg", ""),
    ("rose by 8 kg", ""), ("\u2264 8 kg", "<="),
]  # fmt: skip


@pytest.mark.parametrize(("text", "bound"), BOUNDS)
def test_bounds(text, bound):
    assert one(text).bound == bound


SAID = [
    ("about 200", "203"), ("roughly 1,000", "1,004"), ("just over a thousand", "1,004"),
    ("just under $5,000", "$4,980"), ("nearly thirty kilometres", "29.7 km"),
    ("more than eight billion", "8.1 billion"), ("8 billion", "8.1 billion"),
    ("above 6 percent", "6.1 percent"), ("in 2024", "3 May 2024"), ("in May", "3 May 2024"),
    ("on 3 May", "3 May 2024"), ("at nine", "9:00"), ("9 a.m.", "at 9:00"), ("aged 34", "34 years"),
    ("14 days", "up to 14 days"), ("up to 8 kg", "8 kg"), ("the mid-1970s", "in 1974"),
    ("the early 19th century", "in 1810"), ("at least 18", "18 or older"), ("2", "7-2"),
    ("the 38th birthday", "38 years"), ("fifty years", "its 50th anniversary"),
    ("at most 8 kg", "not more than 8 kg"), ("twice", "two times"),
    ("at 7 a.m.", "at 6:30 a.m., half an hour earlier"), ("six years", "It lasted from 1939 to 1945."),
]  # fmt: skip
UNSAID = [
    ("about 200", "300"), ("just under a thousand", "1,004"), ("more than nine billion", "8.1 billion"),
    ("in 2023", "3 May 2024"), ("at least 8 kg", "at most 8 kg"), ("more than 8 kg", "at most 8 kg"),
    ("under 18", "at least 18"), ("12", "13"), ("the mid-1990s", "in 1974"),
    ("well over thirty kilometres", "29.7 km"), ("100", "102"), ("more than 3", "300"),
    ("in June", "3 May 2024"), ("at ten", "9:00"), ("$5", "5%"), ("eight years", "It lasted from 1939 to 1945."),
]  # fmt: skip


@pytest.mark.parametrize(("said", "known"), SAID)
def test_a_quantity_that_follows_is_said(said, known):
    assert is_said(one(said), read_quantities(known))
    assert not conflicts(one(said), read_quantities(known))


@pytest.mark.parametrize(("said", "known"), UNSAID)
def test_a_quantity_that_does_not_follow_is_unsaid(said, known):
    assert not is_said(one(said), read_quantities(known))


CONFLICTS = [
    ("at least 8 kg", "at most 8 kg"), ("5 kg", "8 kg"), ("12 patients", "13 patients"),
    ("$1.2 billion", "$1.2 million"), ("25%", "52%"), ("on Thursday", "on Tuesday"),
    ("in June 2024", "3 May 2024"), ("9:40 a.m.", "21:40"), ("2 miles", "2 km"),
    ("just under 1,000 votes", "1,004 votes"), ("3 to 15 days", "20 days"), ("7-3", "7-2"), ("13th", "3rd"),
]  # fmt: skip
NO_CONFLICT = [
    ("12 nurses", "13 patients"), ("14 days", "up to 14 days"), ("5 kg", "8 euros"), ("10 kg", "up to 8 kg"),
    ("in May", "3 May 2024"), ("about 200 people", "203 people"), ("3/5/24", "5 March 2024"),
    ("on Friday", "from Monday to Saturday"), ("2", "7-2"), ("more than 25 km/h", "25 km/h"),
    ("4 days", "3 to 5 days"), ("at 9:40", "21:40"), ("7 kg", "8 kg or 7 kg"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), CONFLICTS)
def test_conflicts(a, b):
    assert conflicts(one(a), read_quantities(b)) in read_quantities(b)


@pytest.mark.parametrize(("a", "b"), NO_CONFLICT)
def test_no_conflict_that_is_uncertain(a, b):
    assert conflicts(one(a), read_quantities(b)) is None


WRITTEN = [
    ("The thirty-four-year-old actress won.", "She is 34 years old.", "The 34-year-old actress won."),
    ("Two weeks are enough.", "You have 14 days.", "14 days are enough."),
    ("You have 14 days.", "Two weeks are enough.", "You have two weeks."),
    ("A 90-minute film", "The film lasts 1.5 hours.", "A 1.5-hour film"),
    ("It fell to a quarter.", "It fell to 25%.", "It fell to 25%."),
    ("Nobody under eighteen may enter.", "You must be at least 18.", "Nobody under 18 may enter."),
    ("It took 90 seconds.", "It took 90 minutes.", "It took 90 seconds."),
    ("One of them paid \u20ac5.", "They paid 5 euros.", "One of them paid 5 euros."),
]


@pytest.mark.parametrize(("hypothesis", "premise", "expected"), WRITTEN)
def test_writing_in_the_notation_of_a_premise(hypothesis, premise, expected):
    assert in_notation_of(hypothesis, premise) == expected


LOOPS = ["1", "1 ", "1,", "1-", "one ", "hundred and ", "half a ", "May ", "1 km ", "not more than ", "a@"]


@pytest.mark.parametrize("loop", [*LOOPS, "A-", "(", "9 to "])
def test_degenerate_texts_are_left(loop):
    assert read_quantities(loop * (100_000 // len(loop))) == ()


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("It rose by 8.13 %.", "share"),
        ("It fell at 4.50 percent.", "share"),
        ("It shrank by 8.13 km.", "length"),
        ("She won by 2.30 seconds.", "duration"),
        ("They sold at 12.50 euros.", "money:EUR"),
        ("It rose by 2.15 million.", "number"),
        ("They won by 1.05 points.", "number"),
        ("It grew from 9.30 to 10.15 metres.", "length"),
        ("It shuts at 8.13.", "clock"),
        ("It opens at 9.15 on Monday.", "clock"),
        ("From 9.30 to 10.15 it rains.", "clock"),
        ("At 8.30 Ann came.", "clock"),
        ("It begins at 9.15am.", "clock"),
        ("Be there by 8.30, please.", "clock"),
    ],
)
def test_a_point_after_words_such_as_at_is_that_of_a_time_unless_a_unit_follows(text, dimension):
    assert dimension in {quantity.dimension for quantity in read_quantities(text)}
    assert dimension == "clock" or "clock" not in {quantity.dimension for quantity in read_quantities(text)}


@pytest.mark.parametrize(
    ("hypothesis", "premise", "written"),
    [
        ("Under ten people came.", "Fewer than ten people came.", "Fewer than ten people came."),
        ("Not even ten people came.", "We saw fewer than 10 people.", "Fewer than 10 people came."),
        ("We saw some 3,000 people.", "About three thousand people came.", "We saw about three thousand people."),
        ("It weighs 8 kg or less.", "It weighs at most 8 kg.", "It weighs at most 8 kg."),
        ("It took just over an hour.", "It took slightly more than 60 minutes.", None),
        ("It may not weigh more than 8 kg.", "It may weigh at most 8 kg.", "It may not weigh more than 8 kg."),
        ("The limit for bags is 8 kg.", "Bags may weigh at most 8 kg.", "The limit for bags is 8 kg."),
        ("It weighs over 8 kg.", "It weighs at least 8 kg.", "It weighs over 8 kg."),
        ("It weighs over 8 kg.", "It weighs over 9 kg.", "It weighs over 8 kg."),
        ("At least 5 of 9 came.", "We saw at least five of 9.", "At least five of 9 came."),
    ],
)
def test_a_bound_is_written_as_the_premise_writes_the_same_bound(hypothesis, premise, written):
    assert in_notation_of(hypothesis, premise) == (written or premise)


def test_the_words_of_a_bound_that_say_what_is_limited_are_compared():
    premise = "The minimum for bags is 8 kg."
    assert find_conflict("The maximum of a load is 5 kg.", [premise]) is None
    assert find_conflict("The maximum for bags is 5 kg.", [premise])
