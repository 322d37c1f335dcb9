"""All texts of the Space have a contrast of at least 4.5 (WCAG 2.2, 1.4.3), by its style sheets."""

import re
from functools import cache

import pytest

from mars_score import explanation
from space.layout import CSS, theme

LEAST = 4.5
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
GROUNDS = ("var(--body-background-fill)", "var(--block-background-fill)")
NO_TEXT = (".mars-track", ".mars-track > span", ".mars-track > .mars-below", ".mars-denied .mars-track > span")
# Text and background of gradio's own components, and texts of the page on its two backgrounds.
THEME = [
    *[(name, ground) for name in ("--body-text-color", "--body-text-color-subdued") for ground in GROUNDS],
    *[
        (name, GROUNDS[0])
        for name in ("--link-text-color", "--link-text-color-hover", "--link-text-color-visited")
    ],
    ("--block-title-text-color", GROUNDS[1]),
    ("--block-info-text-color", GROUNDS[1]),
    ("--accordion-text-color", GROUNDS[1]),
    ("--body-text-color", "var(--input-background-fill)"),
    ("--input-placeholder-color", "var(--input-background-fill)"),
    ("--button-primary-text-color", "var(--button-primary-background-fill)"),
    ("--button-primary-text-color", "var(--button-primary-background-fill-hover)"),
    ("--button-secondary-text-color", "var(--button-secondary-background-fill)"),
    ("--button-secondary-text-color", "var(--button-secondary-background-fill-hover)"),
    ("--checkbox-label-text-color", "var(--checkbox-label-background-fill)"),
]


def declarations(body):
    pairs = (line.split(":", 1) for line in body.split(";") if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


@cache
def variables(dark):
    found = {}
    for selectors, body in RULE.findall(theme()._get_theme_css()):
        if ":root" in selectors and (dark or ".dark" not in selectors):
            found |= declarations(body)
    return found


@cache
def rules(dark):
    """What each selector of the style sheets declares, in a mode."""
    found = {}
    for file in (CSS, explanation.CSS):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for selectors, body in RULE.findall(text.split("@media")[0]):
            for selector in map(str.strip, re.split(r",(?![^(]*\))", selectors)):
                if dark or not selector.startswith(".dark "):
                    found.setdefault(selector.removeprefix(".dark "), {}).update(declarations(body))
    return found


def colour(value, dark, ground=None):
    """Red, green and blue of a colour; a mixture with nothing lies on the ground, at its strongest."""
    if mixed := re.fullmatch(r"color-mix\(in srgb, (\S+) (.+), transparent\)", value):
        factor = re.fullmatch(r"calc\(var\(--match\) \* ([\d.]+)\)", mixed[2])
        share = float(factor[1]) if factor else 0.55
        assert factor or mixed[2] == "var(--shade, 0%)"  # which pages.py makes 55% at most
        above, below = colour(mixed[1], dark), colour(ground, dark)
        return tuple(share * one + (1 - share) * other for one, other in zip(above, below, strict=True))
    if named := re.fullmatch(r"var\((--[\w-]+)(?:, .*)?\)", value):
        return colour(variables(dark)[named[1]], dark)
    digits = {"white": "ffffff", "black": "000000"}.get(value, value.removeprefix("#"))
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    return tuple(int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4))


def luminance(rgb):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(text, background):
    low, high = sorted((luminance(text), luminance(background)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_known_colours():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast(colour("#777", False), colour("white", False)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_is_readable(dark):
    low = {
        pair: round(value, 2)
        for pair in THEME
        if (value := contrast(colour(f"var({pair[0]})", dark), colour(pair[1], dark))) < LEAST
    }
    assert low == {}


@pytest.mark.parametrize("dark", [False, True])
def test_the_style_sheets_are_readable(dark):
    low, seen = {}, 0
    for selector, declared in rules(dark).items():
        text, behind = declared.get("color", "inherit"), declared.get("background", "none")
        if selector in NO_TEXT or (text == "inherit" and behind == "none"):
            continue
        text = "var(--body-text-color)" if text == "inherit" else text
        for ground in GROUNDS:
            back = colour(ground if behind == "none" else behind, dark, ground)
            seen += 1
            if (value := contrast(colour(text, dark), back)) < LEAST:
                low[selector, ground] = round(value, 2)
    assert low == {}
    assert seen > 20
    assert {"color", "background"} <= rules(dark)[".mars-mark"].keys()


def test_no_text_is_made_pale_by_opacity():
    assert [selector for selector, declared in rules(False).items() if "opacity" in declared] == []
