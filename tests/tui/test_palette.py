from __future__ import annotations

from rich.cells import cell_len

from coherence.tui import palette
from coherence.tui.help_page import PAGE
from coherence.tui.lines import plain


def test_ascii_text_keeps_the_width_and_tells_all_signs_apart() -> None:
    signs = [*palette.SHAPES.values(), *palette.LEVELS, *palette.DECISIONS.values(), *palette.MARKS.values()]
    for text in (*signs, "東京", "naïve", *map(plain, PAGE)):
        assert palette.ascii_text(text).isascii() and len(palette.ascii_text(text)) == cell_len(text)
    for kinds in (palette.SHAPES, palette.DECISIONS, palette.MARKS):
        assert len({palette.ascii_text(sign) for sign in kinds.values()}) == len(kinds)
    assert palette.LETTERS["unknown"] not in palette.MARKS.values()
    assert len({palette.ascii_text(level) for level in palette.LEVELS}) == len(palette.LEVELS)


def test_ascii_parts_a_wider_sign_takes_its_cell_from_a_gap_or_the_end() -> None:
    assert palette.ascii_parts(["│", "pressure ±0.00; ±1", "    ", "│"]) == ["|", "pressure +-0.00; +-1", "  ", "|"]
    assert palette.ascii_parts(["no room: ±0.00"]) == ["no room: +-0.0"]


def test_bands_have_a_letter_and_a_shape_of_their_own() -> None:
    assert len(set(palette.LETTERS.values())) == len(set(palette.SHAPES.values())) == len(palette.BANDS) == 5
    assert set(palette.BANDS) == palette.LETTERS.keys() == palette.SHAPES.keys() <= palette.STYLES.keys()
    assert all(cell_len(palette.light(band, index)[0][0]) == 8 for band in palette.BANDS for index in (0.5, None))
