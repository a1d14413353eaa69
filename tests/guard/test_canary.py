import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.canary import HashCanary, SlicedCanary

SHARES = st.floats(0, 1)
SALTS = st.text(max_size=20)


@given(SHARES, SALTS)
def test_hash_canary_the_share_of_calls_is_the_share_asked_for(share: float, salt: str) -> None:
    canary = HashCanary(share, salt)
    count = sum(canary.patched(f"call-{number}") for number in range(1000))
    # binomial: six standard deviations, and four calls for the skew of small shares; a fair hash fails once in 1e9
    assert abs(count - 1000 * share) <= 6 * math.sqrt(1000 * share * (1 - share)) + 4


@given(st.text(), SALTS)
def test_hash_canary_none_and_all(call_id: str, salt: str) -> None:
    assert not HashCanary(0, salt).patched(call_id)
    assert HashCanary(1, salt).patched(call_id)


@given(st.text(), SALTS, SHARES, SHARES)
def test_hash_canary_a_larger_share_keeps_the_calls_of_a_smaller_one(
    call_id: str, salt: str, one: Any, other: Any
) -> None:
    small, large = sorted((one, other))
    assert HashCanary(small, salt).patched(call_id) <= HashCanary(large, salt).patched(call_id)


def test_hash_canary_another_salt_draws_anew() -> None:
    ids = [f"call-{number}" for number in range(2000)]
    first = {one for one in ids if HashCanary(0.5, "patch-1").patched(one)}
    second = {one for one in ids if HashCanary(0.5, "patch-2").patched(one)}
    # half of 1000 by chance, standard deviation about 22
    assert 390 < len(first & second) < 610


def test_hash_canary_salt_and_id_are_kept_apart() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", "")]
    answers = [tuple(HashCanary(share / 64, salt).patched(one) for share in range(65)) for salt, one in pairs]
    assert len(set(answers)) == len(pairs)


def test_sliced_canary_every_process_draws_the_same() -> None:
    program = (
        "from coherence.guard.canary import HashCanary, SlicedCanary\n"
        "canary, sliced = HashCanary(0.3, 'p\\u00e4tch'), SlicedCanary(0.3, 'p\\u00e4tch')\n"
        "print(''.join('01'[canary.patched(f'c{n}')] + '01'[sliced.patched(n)] for n in range(200)))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    canary, sliced = HashCanary(0.3, "pätch"), SlicedCanary(0.3, "pätch")
    here = "".join("01"[canary.patched(f"c{n}")] + "01"[sliced.patched(n)] for n in range(200))
    assert runs == [here, here]


@pytest.mark.parametrize("call_id", ["", "\ud800", "\x00", "x" * 10**6, "\u202eabc"])
def test_hash_canary_any_text_is_an_id(call_id: str) -> None:
    canary = HashCanary(0.5, "\udfff")
    assert canary.patched(call_id) is canary.patched(call_id)


@given(SHARES, SALTS, st.integers(1, 20), st.integers(0, 10**12), st.integers(0, 500), st.integers(1, 200))
def test_sliced_canary_any_run_of_slices_holds_its_share_but_for_one(
    share: float, salt: str, length: Any, start: Any, first: Any, count: Any
) -> None:
    canary = SlicedCanary(share, salt, length, start)
    patched = sum(canary.patched(start + number * length) for number in range(first, first + count))
    assert abs(patched - count * share) < 1 + 1e-9


@given(SHARES, SALTS, st.integers(1, 20), st.integers(0, 1000), st.integers(0, 5000))
def test_sliced_canary_all_calls_of_a_slice_are_served_alike(
    share: float, salt: str, length: Any, start: Any, seq: int
) -> None:
    canary = SlicedCanary(share, salt, length, start)
    if seq < start:
        assert not canary.patched(seq)
    else:
        assert canary.patched(seq) == canary.patched(start + (seq - start) // length * length)


def test_sliced_canary_slices_none_and_all() -> None:
    assert not any(SlicedCanary(0, "p", 1).patched(seq) for seq in range(1000))
    assert all(SlicedCanary(1, "p", 1).patched(seq) for seq in range(1000))
    assert not SlicedCanary(1, "p", 1, start=5).patched(4)


def test_the_first_patched_slice_depends_on_the_salt() -> None:
    firsts = {next(seq for seq in range(99) if SlicedCanary(0.1, f"p{n}", 1).patched(seq)) for n in range(200)}
    assert firsts == set(range(10))


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize("kind", [HashCanary, SlicedCanary])
def test_sliced_canary_shares_outside_their_range_are_refused(kind: Any, share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        kind(share, "p")


def test_sliced_canary_other_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="salt"):
        HashCanary(0.5, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="call_id"):
        HashCanary(0.5, "p").patched(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="length"):
        SlicedCanary(0.5, "p", 0)
    with pytest.raises(ValueError, match="seq"):
        SlicedCanary(0.5, "p").patched(-1)
