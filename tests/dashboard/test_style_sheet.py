"""The style sheets: one scale of text sizes, one of spaces, one accent, each defined in one place."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from emulator.dashboard.static_files import FOLDER

SHEETS = {path.name: path.read_text() for path in FOLDER.glob("*.css")}
MOST = {r"text-\d": 6, r"space-\d": 7, "accent": 1}
"""How many custom properties each scale may have, by the pattern of their names."""
DECLARATION = re.compile(r"(?<![\w-])([a-z-]+)\s*:\s*([^;{}]+)")
FONT = re.compile(r"var\(--text-\d\)|inherit|var\(--text-\d\)/[\d.]+ [a-z, -]+")
SPACING = re.compile(r"(scroll-)?(margin|padding)(-[a-z]+)*|([a-z]+-)?gap")
SPACE = re.compile(r"-?(0|auto|1px|var\(--(space-\d|header)\)|calc\((var\(--(space-\d|header)\)|[ +*-]|\d)+\))")
COLOR = re.compile(r"#[0-9a-f]{3,8}\b|\b(rgb|hsl|oklch|light-dark)\(")


def rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield the selector and the declarations of each rule."""
    text = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    yield from ((found[1].strip(), found[2]) for found in re.finditer(r"([^{};]+)\{([^{}]*)\}", text))


def strays(sheet: str) -> list[str]:
    """Return the declarations that use a text size, a space or a color of their own."""
    found = []
    for selector, body in rules(sheet):
        for name, value in DECLARATION.findall(body):
            text = value.strip()
            is_font = name in ("font", "font-size") and not FONT.fullmatch(text)
            is_space = SPACING.fullmatch(name) and SPACE.sub("", text).strip()
            is_color = selector != ":root" and COLOR.search(text)
            if is_font or is_space or is_color:
                found.append(f"{selector} {{ {name}: {text} }}")
    return found


def scale(sheet: str, name: str) -> list[str]:
    """Return the declarations of the custom properties of a scale."""
    return re.findall(rf"--{name}\s*:[^;]+", sheet)


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_uses_only_the_scales(name: str):
    assert [] == strays(SHEETS[name])


@pytest.mark.parametrize("name", MOST)
def test_a_scale_is_small_and_defined_once_at_the_root(name: str):
    everywhere = [each for sheet in SHEETS.values() for each in scale(sheet, name)]
    at_root = [each for sheet in SHEETS.values() for selector, body in rules(sheet) if selector == ":root"
               for each in scale(body, name)]  # fmt: skip

    assert everywhere == at_root
    assert 0 < len(at_root) <= MOST[name]
    assert len(at_root) == len({each.partition(":")[0] for each in at_root})


@pytest.mark.parametrize(
    "rule",
    [
        "p { font-size: .9rem; }",
        "p { font-size: larger }",
        "p { font: 15px/1.5 serif; }",
        "p { margin: 0 0 1.1rem; }",
        "p { margin-top: -3px; }",
        "p { padding-inline: 2em; }",
        "@media (min-width: 40rem) { p { row-gap: 5px; } }",
        "p { padding: calc(var(--space-1) + 3px); }",
        "html { scroll-padding: 4rem 0; }",
        "p { color: #123456; }",
        ".dark { --accent: rgb(1 2 3); }",
    ],
)
def test_a_size_outside_the_scales_is_found(rule: str):
    assert 1 == len(strays(rule))


@pytest.mark.parametrize(
    "rule",
    [
        "p { font-size: var(--text-2); margin: 0 auto var(--space-3) 1px; }",
        "p { padding: calc(var(--header) + var(--space-5)) 0; gap: var(--space-1) var(--space-2); }",
        "p { width: 40rem; border: 3px solid; color: var(--accent); }",
        "button { font: inherit; }",
    ],
)
def test_a_rule_that_uses_the_scales_is_accepted(rule: str):
    assert [] == strays(rule)
