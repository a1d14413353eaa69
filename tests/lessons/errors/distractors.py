"""Lessons about errors of tools that do not exist, to fill a store with: many, and as different as real ones are."""

from __future__ import annotations

from random import Random

import msgspec

from lessons.errors.noise import VERBS, WORDS, Noise


class Distractor(msgspec.Struct, frozen=True):
    """A lesson that answers nothing."""

    error_text: str
    fix_text: str
    pattern: str
    tool: str


_TOOLS = (
    "{name}", "{name}ctl", "{name}-cli", "{name}d", "lib{name}", "{name}.js", "{name}-rs", "py{name}", "go-{name}",
    "{Name}SDK", "{name} {verb}", "{name}-{noun}", "@{name}/{noun}", "org.{name}.{noun}", "{name}::{noun}",
    "{noun}-{name}",
)  # fmt: skip
_FAULTS = (
    "cannot {verb} the {noun} '{id}' because its {noun2} is {state}",
    "failed to {verb} {noun} {id}: {noun2} {state}",
    "{noun} {id} was rejected by the {noun2} {part} ({code})",
    "expected a {noun} {part} before {verb2} of '{id}', found a {noun2} {part2}",
    "{part} '{id}' has no {noun} to {verb}",
    "refusing to {verb} {noun} '{id}': {noun2} {part} is {state}",
    "unable to {verb} {part} {id}; {verb2} the {noun} first",
    "{noun}.{id}: {part} must be {state}, and the {noun2} is {state2}",
    "invalid {noun} {part}: {id}",
    "the {part} of {noun} '{id}' is {state} since the last {verb2}",
    "{code}: {noun} {part} {state} while we {verb} '{id}'",
    "could not {verb} '{id}' into {noun2}: {part} {state}",
    "too many {noun} {part}s are {state} for {id}, {verb} some of them",
    "{id} does not {verb} {noun} {part}s of kind {noun2}",
    "mismatched {part} in {noun} '{id}', {noun2} says {state}",
    "{noun} quota of {id} used up during {verb2}",
    "no {noun} {part} provides '{id}' ({noun2} {state})",
    "{verb} {noun}: {part} {id} {state}",
    "unknown {part} {id} in {noun} section, did you mean to {verb} the {noun2}?",
    "circular {noun} between {id} and {noun2} {part}",
    "{part} overflow: {noun} '{id}' does not fit the {noun2}",
    "lost the {noun2} {part} of {id} after {n} attempts to {verb} it",
    "{noun} '{id}' already {state}, will not {verb} twice",
    "{part} {n} of {noun} {id} is {state} ({noun2} wants {n2})",
)
_FRAMES = (
    "{tool}: {fault}",
    "{tool}: error: {fault}",
    "error: {fault}\n  in {path}:{n}",
    "[{code}] {fault}",
    "{Name}{kind}: {fault}",
    "Traceback (most recent call last):\n{stack:python}\n{tool_dotted}.{kind}: {fault}",
    "{Name}{kind}: {fault}\n{stack:node}",
    "{date} {time} ERROR [{tool}] {fault}",
    "level=error component={tool} msg=\"{fault}\"",
    "com.{name}.{Name}{kind}: {fault}\n{stack:java}",
    "FATAL {code} {tool} {fault} (request {uuid})",
    "error[{code}]: {fault}\n --> {file}:{n}:{n2}",
    "{{\"error\": {{\"code\": \"{code}\", \"message\": \"{fault}\"}}}}",
    "panic: {fault}\n\ngoroutine 1 [running]:\n{stack:go}",
    "{fault}",
)  # fmt: skip
_PARTS = (
    "anchor axis bearer beacon block body boundary bundle cell chunk clause claim cursor digest domain edge entry "
    "envelope epoch extent facet fence field fragment frame gate grant handle header hint hook key label lane layer "
    "lease limit link lock lookup manifest mark mask matrix mount nonce node offset operand option origin owner page "
    "parcel peer pin pivot pointer pool prefix probe quorum range reference replica root scope seal segment selector "
    "shard signature slice slot span stamp stanza stub suffix table tenant ticket token trait tuple unit vector window"
).split()
_STATES = (
    "absent ambiguous archived blocked busy cancelled closed compressed corrupt deferred deleted deprecated detached "
    "dirty disabled drained duplicated empty encrypted exhausted expired foreign frozen hidden idle immutable "
    "incomplete inconsistent locked malformed misaligned mutable negative obsolete offline orphaned outdated paused "
    "pending pinned private quarantined reserved revoked sealed shadowed signed stale suspended truncated unbalanced "
    "unbound unlinked unreadable unreleased unsigned unsorted untrusted volatile withdrawn"
).split()
_KINDS = "Error Exception Failure Fault Violation NotFound Timeout Conflict Denied Mismatch Unavailable Invalid".split()
_FIXES = (
    "run `{tool} {verb} --{part} {id}`",
    "{verb2} the {noun} before the {noun2}",
    "set {noun}_{part} to {state} in {name}.toml",
    "raise the {noun} {part} limit in {file}",
    "{tool} {verb} {id} && {tool} {verb2}",
    "rename the {part} '{id}' and {verb} the {noun} again",
)
_SOUNDS = (
    "ba be bi bo bra bri da de di do dra fa fe flo ga ge glo gra ha he hi jo ka ke ki kla ko kra la le li lo lu ma me "
    "mi mo na ne ni no nu o pa pe pi plo pra qua ra re ri ro sa se shi ska so sta ta te ti to tra u va ve vi vo xa ya "
    "ye za ze zi zo"
).split()
_ENDS = ("", "", "n", "r", "x", "l", "s", "th", "nd", "rk", "mp", "q")


def _name(rng: Random) -> str:
    return "".join(rng.choice(_SOUNDS) for _ in range(rng.choice((2, 2, 3)))) + rng.choice(_ENDS)


def _id(rng: Random) -> str:
    style = rng.randrange(5)
    if style == 0:
        return _name(rng)
    if style == 1:
        return f"{rng.choice(WORDS)}_{_name(rng)}"
    if style == 2:
        return f"{_name(rng)}-{rng.randint(1, 999)}"
    if style == 3:
        return f"{rng.choice(WORDS)}.{rng.choice(_PARTS)}.{_name(rng)}"
    return _name(rng).capitalize() + rng.choice(WORDS).capitalize()


def _code(rng: Random) -> str:
    letters = "".join(rng.choice("ABCDEFGHKLMNPRSTVWX") for _ in range(rng.choice((1, 2, 3))))
    return f"{letters}{rng.choice(('', '-', '_'))}{rng.randint(10, 9999)}"


def _made(rng: Random) -> Distractor:
    noise = Noise(rng, rng.choice(("python", "node", "java", "go", "rust", "shell")))
    noun, noun2 = rng.sample(WORDS, 2)
    name, verb, verb2 = _name(rng), *rng.sample(VERBS, 2)
    part, part2 = rng.sample(_PARTS, 2)
    state, state2 = rng.sample(_STATES, 2)
    words = {"noun": noun, "noun2": noun2, "name": name, "Name": name.capitalize(), "verb": verb, "verb2": verb2}
    words |= {"part": part, "part2": part2, "state": state, "state2": state2, "kind": rng.choice(_KINDS)}
    words |= {"id": _id(rng), "code": _code(rng), "n": str(rng.randint(2, 999)), "n2": str(rng.randint(2, 99))}
    words["tool"] = rng.choice(_TOOLS).format(**words)
    words["tool_dotted"] = name + "." + noun
    words["fault"] = rng.choice(_FAULTS).format(**words)
    template = rng.choice(_FRAMES)
    for kind in ("path", "file", "date", "time", "uuid"):
        words[kind] = noise.value(kind)
    for language in ("python", "node", "java", "go"):
        slot = f"{{stack:{language}}}"
        if slot in template:
            template = template.replace(slot, "{stack}")
            words["stack"] = noise.frames(language, rng.randint(1, 6))
    return Distractor(
        error_text=template.format(**words),
        fix_text=rng.choice(_FIXES).format(**words),
        pattern=f"{verb}-{part}",
        tool=rng.choice(("Bash", "Bash", "Bash", words["tool"])),
    )


def distractors(n: int, seed: int = 0) -> list[Distractor]:
    """Make `n` lessons that answer none of the errors of any family; no two of their texts are equal.

    The names of tools and things are made of syllables, so that each lesson has words that no other one has; what is
    wrong with them is put together from words of real messages.
    """
    rng = Random(f"distractors {seed}")
    made: dict[str, Distractor] = {}
    while len(made) < n:
        lesson = _made(rng)
        made.setdefault(lesson.error_text, lesson)
    return list(made.values())
