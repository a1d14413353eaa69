"""Languages of texts, told by script and function words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.languages import differ, language


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Explain what a mutex is and when it should be used.", "en"),
        ("Ein Mutex sorgt daf\u00fcr, dass nur ein Faden den Abschnitt betritt.", "de"),
        ("Ouvrez la page de connexion, puis suivez le lien que nous vous envoyons.", "fr"),
        ("La cookie caducaba antes de tiempo y ahora se renueva con cada petici\u00f3n.", "es"),
        ("Mantenha o quarto escuro e n\u00e3o use o telem\u00f3vel uma hora antes.", "pt"),
        ("Il treno parte alle sette e non arriva prima di sera.", "it"),
        ("De trein vertrekt niet op tijd en dat is een probleem voor het team.", "nl"),
        ("\u0424\u0443\u043d\u043a\u0446\u0438\u044f \u0433\u043e\u0442\u043e\u0432\u0430", "ru"),
        ("\u8bf7\u4fee\u590d\u767b\u5f55\u9519\u8bef", "zh"),
        ("\u4f1a\u8b70\u3067\u306f\u6c7a\u307e\u308a\u307e\u3057\u305f", "ja"),
        ("fetch_user(uid)", ""),
        ("", ""),
        ("Paris", ""),
    ],
)
def test_language(text: str, name: str) -> None:
    assert language(text) == name


def test_differ_needs_both_languages_or_another_script() -> None:
    assert differ("Fix the login bug.", "Ein Fehler ist jetzt nicht mehr da.")
    assert not differ("Fix the login bug.", "Paris")
    assert differ("Paris", "\u6771\u4eac\u3078\u884c\u304f")
    assert not differ("", "")


@given(st.text(), st.text())
def test_differ_laws(one: str, other: str) -> None:
    assert not differ(one, one)
    assert differ(one, other) == differ(other, one)
