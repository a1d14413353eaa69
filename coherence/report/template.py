"""Pages of one file: jinja2 templates, escaped, under a policy that lets nothing run or load but what they hold."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from coherence.core.lazy import lazy_regex
from coherence.core.readings import number_of
from coherence.report.text import clean, number, undirected

# Not the slash of an end tag: a name is marked up before it is made breakable.
_JOINT = lazy_regex(r"(?<!<)([/_-])(?=\w)")


def environment(package: str) -> Environment:
    """Return the templates of a package of ours, and those of this one, on which they build.

    Parameters
    ----------
    package : str
        The package whose folder ``templates`` is looked into.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # any text that a template writes: a control character would make the page malformed
        finalize=lambda value: clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    made.filters |= {
        "breakable": breakable,
        "count": number_of,
        "isolated": isolated,
        "number": number,
        "percent": lambda share: f"{share:.0%}",
        "undirected": undirected,
    }
    return made


def isolated(text: str) -> Markup:
    r"""Return text that cannot turn the writing direction of what stands around it.

    Examples
    --------
    >>> str(isolated("a < b")), str(isolated("\u05d0"))
    ('a &lt; b', '<bdi>\u05d0</bdi>')
    """
    shown = escape(clean(text))
    return shown if text.isascii() else Markup("<bdi>{}</bdi>").format(shown)


def breakable(name: str, before: str = "") -> Markup:
    """Return a name, with words before it, that a line breaks at its slashes and joints, not within a word."""
    return escape(before) + Markup(_JOINT.sub(r"\1<wbr>", str(isolated(name))))  # noqa: S704 - escaped before


def render_page(pages: Environment, name: str, *, styles: Sequence[str], script: str = "", **given: Any) -> str:
    """Return a page; its policy allows its own styles and script only.

    Parameters
    ----------
    pages : Environment
        Of :func:`environment`.
    name : str
        Of the template, which extends ``base.html``.
    styles : sequence of str
        Packages whose ``page.css`` it holds.
    script : str
        All of its JavaScript; empty = none may run.
    **given
        What the template shows, ``title`` among it.
    """
    style = "".join(asset(package, "page.css") for package in styles)
    scripts = f"script-src {_hash(script)}; " if script else ""
    policy = f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"
    return pages.get_template(name).render(style=style, script=script, policy=Markup(policy), **given) + "\n"  # noqa: S704


def asset(package: str, name: str) -> str:
    """Return a text file of a package of ours."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
