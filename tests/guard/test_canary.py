import math
import subprocess
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.patch_state import in_share, in_slice

SHARES = st.floats(0, 1)
SALTS = st.text(max_size=20)


@given(SHARES, SALTS)
def test_in_share_takes_the_share_of_calls_that_is_asked_for(share: float, salt: str) -> None:
    count = sum(in_share(share, salt, f"call-{number}") for number in range(1000))
    # binomial: six standard deviations, and four calls for the skew of small shares; a fair hash fails once in 1e9
    assert abs(count - 1000 * share) <= 6 * math.sqrt(1000 * share * (1 - share)) + 4


@given(st.text(), SALTS, SHARES, SHARES)
def test_in_share_a_larger_share_keeps_the_calls_of_a_smaller_one(
    call_id: str, salt: str, one: Any, other: Any
) -> None:
    small, large = sorted((one, other))
    assert in_share(small, salt, call_id) <= in_share(large, salt, call_id)
    assert (in_share(0, salt, call_id), in_share(1, salt, call_id)) == (False, True)


def test_in_share_and_in_slice_every_process_draws_the_same() -> None:
    program = (
        "from coherence.guard.patch_state import in_share, in_slice\n"
        "print(''.join('01'[in_share(0.3, 'p\\u00e4h', f'c{n}')] + '01'[in_slice(0.3, 'p', 5, n)] for n in range(60)))"
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
    here = "".join("01"[in_share(0.3, "päh", f"c{n}")] + "01"[in_slice(0.3, "p", 5, n)] for n in range(60))
    assert runs == [here, here]


@given(SHARES, SALTS, st.integers(1, 20), st.integers(0, 500), st.integers(1, 200))
def test_in_slice_any_run_of_slices_holds_its_share_but_for_one(
    share: float, salt: str, length: Any, first: Any, count: Any
) -> None:
    patched = sum(in_slice(share, salt, length, number * length) for number in range(first, first + count))
    assert abs(patched - count * share) < 1 + 1e-9
