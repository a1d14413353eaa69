"""Which calls a patch serves before it is trusted: a share by hash of the call's id, or slices of calls in turn."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from coherence.core.validation import check_count, check_number, check_text

_WHOLE = 2**64


class HashCanary(msgspec.Struct, frozen=True):
    """A share of calls by hash: the same call falls on the same side in every process and after every restart.

    A call is patched if 64 bits of BLAKE2b (RFC 7693) of salt and id, as a fraction of 2**64, lie below the share. With
    the same salt a larger share keeps the calls of a smaller one; another salt draws anew.

    Parameters
    ----------
    share : float
        Share of calls that the patch serves, in [0, 1].
    salt : str
        What makes the draw of one patch independent of that of others: its id.

    Raises
    ------
    TypeError, ValueError
        For a share outside [0, 1] or a salt that is not a text.

    Examples
    --------
    >>> canary = HashCanary(0.1, salt="patch-1")
    >>> sum(canary.patched(f"call-{number}") for number in range(1000))
    89
    """

    share: float
    salt: str

    def __post_init__(self) -> None:
        check_number("share", self.share, least=0, most=1)
        check_text("salt", self.salt)

    def patched(self, call_id: str) -> bool:
        """Tell whether the patch serves this call."""
        return _hashed(self.salt, check_text("call_id", call_id)) < int(self.share * _WHOLE)


class SlicedCanary(msgspec.Struct, frozen=True):
    """A share of slices of consecutive calls, for a configuration that can only be switched for all calls at once.

    Slice ``k`` holds the calls ``start + k * length`` to ``start + (k + 1) * length - 1``. Patched slices are spread
    evenly by systematic sampling with a start that depends on the salt (Cochran 1977, Sampling Techniques, ch. 8):
    among any ``n`` slices in a row they are ``n * share``, give or take one. A load that repeats with the period of the
    patched slices is met at the same place each time; a length that does not divide its period avoids that.

    Parameters
    ----------
    share : float
        Share of slices that the patch serves, in [0, 1].
    salt : str
        The patch's id.
    length : int
        Calls in a slice, 1 or more. Longer slices switch the configuration less often, but follow
        the load less evenly.
    start : int
        Sequence number of the first call after the patch was accepted, 0 or more.

    Raises
    ------
    TypeError, ValueError
        For a parameter of another type or outside its range.

    Examples
    --------
    >>> canary = SlicedCanary(0.25, salt="patch-1", length=5)
    >>> "".join("x" if canary.patched(seq) else "." for seq in range(40))
    '..........xxxxx...............xxxxx.....'
    """

    share: float
    salt: str
    length: int = 5
    start: int = 0

    def __post_init__(self) -> None:
        check_number("share", self.share, least=0, most=1)
        check_text("salt", self.salt)
        check_count("length", self.length, least=1)
        check_count("start", self.start)

    def patched(self, seq: int) -> bool:
        """Tell whether the patch serves the call with this sequence number; calls before the start are not patched."""
        slice_number, step = (check_count("seq", seq) - self.start) // self.length, int(self.share * _WHOLE)
        return slice_number >= 0 and (slice_number * step + _hashed(self.salt, "")) % _WHOLE + step >= _WHOLE


def _hashed(salt: str, call_id: str) -> int:
    """Return 64 bits; the length before the salt keeps ("a", "bc") and ("ab", "c") apart."""
    text = f"{len(salt)}:{salt}{call_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
