"""Regular expressions of the signs take time that grows with the text, not with its square, on hostile shapes too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from growth import check_growth

from coherence.detect import (
    additions,
    allowances,
    arithmetic,
    asked,
    authored,
    breakdown,
    claim_words,
    code_features,
    constraints,
    contradiction,
    deeds,
    directives,
    endings,
    extractors,
    failure_cues,
    fingerprints,
    glossed_over,
    goal_loss,
    grounding,
    held_results,
    hijack_facts,
    languages,
    misplaced,
    notations,
    number_words,
    objects,
    own_work,
    prohibitions,
    properties,
    reckoned,
    records,
    restated,
    restriction_words,
    retold,
    sources,
    spans,
    terms,
    text_analysis,
    text_tables,
    told_states,
    workings,
    written_prose,
)
from coherence.policy.danger import unasked
from coherence.policy.rules import claims, quality
from coherence.providers import chat_judge
from coherence.state import progress

USED: dict[str, Callable[[str], object]] = {
    "beginning": lambda text: failure_cues._BEGINNING.match(text),
    "exit": lambda text: failure_cues._EXIT.findall(text),
    "field": lambda text: failure_cues._FIELD.findall(text),
    "data": lambda text: failure_cues._DATA.match(text),
    "page": lambda text: failure_cues._PAGE.findall(text),
    "idle": lambda text: failure_cues._IDLE.fullmatch(text),
    "last": lambda text: failure_cues._LAST.findall(text),
    "line": lambda text: failure_cues._LINE.findall(text),
    "unknown": lambda text: failure_cues._UNKNOWN.findall(text),
    "tests": lambda text: failure_cues._TESTS.findall(text),
    "timestamp": lambda text: fingerprints._TIMESTAMP.findall(text),
    "no hits": lambda text: failure_cues._NO_HITS.match(text),
    "marks": lambda text: failure_cues._MARKS.findall(text),
    "nothing": lambda text: failure_cues._NOTHING.fullmatch(text),
    "pending": lambda text: failure_cues._PENDING.findall(text),
    "gauge": lambda text: failure_cues._GAUGE.fullmatch(text),
    "code": lambda text: breakdown._CODE.findall(text),
    "item": lambda text: breakdown._ITEM.findall(text),
    "template mark": lambda text: breakdown._MARK.findall(text),
    "piece": lambda text: breakdown._PIECE.findall(text),
    "english words": lambda text: text_analysis._WORD_OF_ANY.findall(text),
    "changes": lambda text: progress._CHANGES.findall(text),
    "written": lambda text: unasked._WRITTEN.findall(text),
    "saved": lambda text: unasked._SAVED.findall(text),
    "removed": lambda text: unasked._REMOVED.findall(text),
    "folders": lambda text: unasked._FOLDERS.findall(text),
    "restores": lambda text: unasked._RESTORES.search(text),
    "names": lambda text: progress._NAMES.search(text),
    "name words": lambda text: fingerprints._NAME_WORDS.findall(text),
    "summary": lambda text: goal_loss._SUMMARY.search(text),
    "bare": lambda text: breakdown._BARE.findall(text),
    "limit": lambda text: fingerprints._LIMIT.findall(text),
    "delegates": lambda text: directives._DELEGATES.search(text),
    "names pointed at": lambda text: directives._NAMES.findall(text),
    "quoted": lambda text: directives._QUOTED.findall(text),
    "things pointed at": lambda text: directives._THINGS.findall(text),
    "dense orders": lambda text: directives._DENSE_ORDERS.search(text),
    "ends of asked sentences": lambda text: directives._SENTENCE_END.findall(text),
    "sender": lambda text: hijack_facts._SENDER.findall(text),
    "record": lambda text: hijack_facts._RECORD.findall(text),
    "ends of sentences": lambda text: text_analysis._ENDS.split(text),
    "sentence end": lambda text: breakdown._SENTENCE_END.split(text),
    "paths": extractors.paths,
    "times": extractors.times,
    "dates": extractors.dates,
    "workings": lambda text: list(workings.workings(text)),
    "attached numbers": lambda text: list(sources._attached(text)),
    "lone days": lambda text: sources._LONE_DAY.findall(text),
    "ids": extractors.ids,
    "calls of names": lambda text: extractors._NAMED_CALL.search(text),
    "claims tried": lambda text: contradiction._TRIED.findall(text),
    "claims clause": lambda text: claim_words.CLAUSE.findall(text),
    "claims aside": lambda text: claim_words._ASIDE.findall(text),
    "claims word": lambda text: claim_words._WORD.findall(text),
    "claims red": lambda text: contradiction._RED.findall(text),
    "claims green": lambda text: contradiction._GREEN.findall(text),
    "claims partly": lambda text: contradiction._PARTLY.findall(text),
    "claims unread": lambda text: contradiction._UNREAD.findall(text),
    "claims alone": lambda text: contradiction._ALONE.findall(text),
    "claims amount": lambda text: held_results._AMOUNT.findall(text),
    "claims clock": lambda text: held_results._CLOCK.findall(text),
    "claims sql": lambda text: contradiction._SQL.findall(text),
    "claims day": lambda text: told_states._DAY.findall(text),
    "steps of a command": lambda text: fingerprints.STEPS.findall(text),
    "claims marks": lambda text: told_states.MARKS.findall(text),
    "claims test call": lambda text: contradiction._TEST_CALL.findall(text),
    "claims build call": lambda text: contradiction._BUILD_CALL.findall(text),
    "claims field line": lambda text: told_states._FIELD_LINE.findall(text),
    "claims id key": lambda text: told_states._ID_KEY.findall(text),
    "grounding paper form": lambda text: grounding._PAPER_FORM.findall(text),
    "grounding says": lambda text: grounding._SAYS.findall(text),
    "grounding asks to say": lambda text: grounding._ASKS_TO_SAY.findall(text),
    "grounding example": lambda text: grounding._EXAMPLE.findall(text),
    "grounding version form": lambda text: grounding._VERSION_FORM.findall(text),
    "grounding standard": lambda text: grounding._STANDARD.findall(text),
    "grounding placeholder": lambda text: grounding._PLACEHOLDER.findall(text),
    "grounding digit chain": lambda text: grounding._DIGIT_CHAIN.findall(text),
    "grounding sizes": lambda text: grounding._SIZES.findall(text),
    "grounding bytes": lambda text: grounding._BYTES.findall(text),
    "grounding fence": lambda text: grounding._FENCE.findall(text),
    "grounding command": lambda text: grounding._COMMAND.findall(text),
    "grounding wordlike": lambda text: grounding._WORDLIKE.fullmatch(text),
    "written prose trying": lambda text: written_prose._TRYING.findall(text),
    "written prose code": lambda text: written_prose._CODE.findall(text),
    "written prose heredoc": lambda text: written_prose._HEREDOC.findall(text),
    "written prose target": lambda text: written_prose._TARGET.findall(text),
    "written prose echo": lambda text: written_prose._ECHO.findall(text),
    "written prose option": lambda text: written_prose._OPTION.findall(text),
    "written prose sends": lambda text: written_prose._SENDS.findall(text),
    "written prose tag": lambda text: written_prose._TAG.findall(text),
    "written prose suggests": lambda text: written_prose._SUGGESTS.findall(text),
    "written prose plans": lambda text: written_prose._PLANS.findall(text),
    "written prose plan": lambda text: written_prose._PLAN.findall(text),
    "claims dictates": lambda text: contradiction._DICTATES.findall(text),
    "made up": lambda text: claims.MADE_UP.findall(text),
    "lines of a file": lambda text: quality._LINES.fullmatch(text),
    "claims success": lambda text: held_results._SUCCESS.findall(text),
    "claims flawless": lambda text: claim_words.FLAWLESS.findall(text),
    "claims measured": lambda text: told_states._MEASURED.findall(text),
    "fenced": lambda text: text_analysis._FENCED.findall(text),
    "statement end": lambda text: text_analysis._STATEMENT_END.findall(text),
    "label": lambda text: text_analysis._LABEL.match(text),
    "field of a record": lambda text: text_analysis._FIELD.match(text),
    "key that commands": lambda text: text_analysis._commands(text),
    "additions strong": lambda text: additions._STRONG.findall(text),
    "additions weak": lambda text: additions._WEAK.findall(text),
    "additions dense not": lambda text: additions._DENSE_NOT.findall(text),
    "additions dense act": lambda text: additions._DENSE_ACT.findall(text),
    "additions quoted": lambda text: additions._QUOTED.findall(text),
    "additions i": lambda text: additions._I.findall(text),
    "additions plain": lambda text: additions._PLAIN.findall(text),
    "additions heading": lambda text: additions._HEADING.match(text),
    "additions clause end": lambda text: additions._CLAUSE_END.split(text),
    "asked mend": lambda text: asked._MEND.findall(text),
    "asked make": lambda text: asked._MAKE.findall(text),
    "asked spelling": lambda text: asked._SPELLING.findall(text),
    "asked change": lambda text: asked._CHANGE.findall(text),
    "asked asks": lambda text: asked._ASKS.match(text),
    "asked request": lambda text: asked._REQUEST.findall(text),
    "asked fence": lambda text: asked.FENCE.findall(text),
    "asked code line": lambda text: asked.CODE_LINE.match(text),
    "asked text": lambda text: asked._TEXT.findall(text),
    "asked rewording": lambda text: asked._REWORDING.findall(text),
    "asked message": lambda text: asked._MESSAGE.findall(text),
    "asked brief": lambda text: asked._BRIEF.findall(text),
    "asked open": lambda text: asked._OPEN.findall(text),
    "asked add": lambda text: asked._ADD.match(text),
    "asked elsewhere": lambda text: asked._ELSEWHERE.findall(text),
    "asked counted": lambda text: asked._COUNTED.findall(text),
    "asked limit": lambda text: asked._LIMIT.findall(text),
    "authored word": lambda text: authored._WORD.findall(text),
    "code features code features": lambda text: code_features._CODE_FEATURES.findall(text),
    "code features comment": lambda text: code_features.COMMENT.findall(text),
    "code features signature": lambda text: code_features._SIGNATURE.findall(text),
    "code features default": lambda text: code_features._DEFAULT.findall(text),
    "code features sentences": lambda text: code_features._SENTENCES.findall(text),
    "code features statement": lambda text: code_features._STATEMENT.findall(text),
    "code features defined": lambda text: code_features._DEFINED.findall(text),
    "code features parts": lambda text: code_features._PARTS.findall(text),
    "code features name": lambda text: code_features._NAME.findall(text),
    "code features plain": lambda text: code_features._PLAIN.findall(text),
    "additions features": lambda text: [each.findall(text) for each in code_features._FEATURES.values()],
    "additions names": lambda text: [each.findall(text) for each in additions._NAMES.values()],
    "judge number": lambda text: chat_judge._NUMBER.findall(text),
    "judge thought": lambda text: chat_judge._THOUGHT.sub("", text),
    "constraints stays": lambda text: constraints._STAYS.findall(text),
    "constraints cue": lambda text: constraints._CUE.findall(text),
    "languages word": lambda text: languages._WORD.findall(text),
}
"""Each as it is asked; a search through the whole text where one search might stop early."""

OF_ANSWERS = (
    *(arithmetic, endings, glossed_over, misplaced, notations, number_words, own_work, reckoned, records),
    *(restated, retold, spans, terms, text_tables, workings),
)
"""Modules of which every pattern is searched for through the whole text."""

USED.update(
    {
        f"{module.__name__.rpartition('.')[2]}{name}": pattern.findall
        for module in OF_ANSWERS
        for name, pattern in vars(module).items()
        if hasattr(pattern, "findall") and name.isupper()
    }
)
USED.update(
    {
        f"deed {name} {part}": pattern.findall
        for name, told in own_work._tables().items()
        for part, pattern in told._asdict().items()
        if pattern is not None
    }
)
USED.update({f"deed gate {at}": gate.findall for at, gate in enumerate(own_work._gates())})
USED.update({f"part {at}": sign.findall for at, sign in enumerate(records._PARTS)})
USED.update(
    {
        "claims lint call": lambda text: contradiction._LINT_CALL.findall(text),
        "claims lint red": lambda text: contradiction._LINT_RED.findall(text),
        "claims changed": lambda text: told_states._CHANGED.findall(text),
        "claims labels": lambda text: told_states._LABELS.findall(text),
        "claims answers": lambda text: contradiction._ANSWERS.findall(text),
        "grounding sample": lambda text: grounding._SAMPLE.findall(text),
        "grounding format": lambda text: grounding._FORMAT.findall(text),
        "grounding numbered": lambda text: grounding._NUMBERED.findall(text),
        "grounding admits": lambda text: grounding._ADMITS.findall(text),
    }
)

PIECES = (
    'a', ' ', '\n', '\t', '0', '.', '-', '/', '_', "'", '"', '`', '```', '{', '}', '{{', '{%', '[', '<', '<|', '|',
    '$', '%', ':', 'rm ', 'rm a ', 'rm -rf ', 'no ', 'not found', 'error', 'Error:', 'exit code ', '"error": ',
    '"error": [', '> ', '>>', 'a> ', 'a.', 'a/', 'a=', '1 ', '1.', '\xe9', '\u65e5', '- ', '* ', '# ', '\xa0',
    'http/1.1 4', 'make[1', '__A', '%(a', 'lorem ', 'a\n', ']\n', 'pip ', 'git ', 'sed -i ', 'cat > ', 'tee ',
    'cp a ', 'mv a ', 'in progress', 'pending', 'status: ', 'temperature ', 'null',
    '<title>', '<h1>error ', 'connect E', ': access denied (', 'an error ', 'a:', 'a(1', 'a:1: ', 'a.go:1:1: ',
    'exited with ', 'exit: ', 'a exit', 'returned nonzero exit ', 'npm error', 'a: error', 'http_code', '"__type": "a.',
    'process ', 'process', 'a: cannot ', 'error A', 'error 1',
    'your search ', 'search ', 'no such ', 'a: no such', 'a b: no', '0 results', 'unknown ',
    'mkdir ', 'mkdir -p ', 'mkdir a ', 'earlier ', 'context ', 'conversation ', 'git checkout', '_id', 'aB',
    'ab ', 'exceeded a ', 'over ', 'quota a ', 'quota ',
    'write', 'write(', "write('", 'to_', 'to_a(', 'open(', "open('", "open('a',",
    'a; ', 'a. ', 'a."', 'a: ', '= ',
    'abc: ', 'abc: A', 'tasks ', 'do ', 'do a ', 'accept the ', 'do her ', 'a@', '#1', 'A', 'from',
    '}, ', '), ', '), Ab', 'E   ', 'E   a.', '==== ', '1 failed, ', '1 failed ', 'Tests: ', 'FAILED (',
    '"a', '\u201ca', '1,000', '1 of ', 'a: ', 'npm ', 'npm run ', 'npm -a ', 'cargo ', 'DROP ', 'UPDATE a ', '5 tests ',
    'not found ', 'was not ', 'do not ', 'keep ', 'only edit ', 'budget of ', 'stay under ', 'no a may be ',
    'hands off ', 'a is frozen', 'no problem', 'without any ', 'all done', '1 x ', '12-', 'such as ', 'reply ',
    'said ', 'cat > a.md <<E\n', "echo 'a", 'made ', '```a\n', 'must stay', 'without aing ', 'I do not want ',
    'at most 1', 'a@b.c', 'a@', 'def ', 'sende ', ' no ', ', ', ' but ', '(', '<returncode>',
    '>a\n', '**', 'THOUGHT: ', '1) ', '2024-01-0',
    'I also added a ', 'chapter 1 ', 'CREATE TABLE a', 'tell ', 'make a ', 'and a ', 'other ', '\u628a', '\u6dfb\u52a0',
)  # fmt: skip


USED.update(
    {
        f"{module.__name__.rpartition('.')[2]}.{name}": pattern.findall
        for module in (allowances, deeds, objects, prohibitions, properties, restriction_words)
        for name, pattern in vars(module).items()
        if hasattr(pattern, "finditer") and name.isupper()
    }
)
USED.update({f"form {name}": pattern.findall for name, pattern in properties.FORMS.items()})
USED.update({f"kind {name}": pattern.findall for name, pattern in sorted(objects.KINDS.items())})


@pytest.mark.slow
@pytest.mark.parametrize("name", USED)
def test_growth_a_pattern_takes_no_more_than_its_share_for_a_longer_text(name: str) -> None:
    check_growth(USED[name], PIECES)
