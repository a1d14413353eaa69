"""The calls that a patch serves before it is trusted: a share by hash of the call's id, or slices of calls in turn."""

from __future__ import annotations

from hashlib import blake2b

_WHOLE = 2**64


def in_share(share: float, salt: str, call_id: str) -> bool:
    """Return whether a call is among a share of calls: the same in every process and after every restart.

    It is if 64 bits of BLAKE2b (RFC 7693) of salt and id, as a fraction of 2**64, lie below the share. With the same
    salt a larger share keeps the calls of a smaller one; another salt draws anew.

    Examples
    --------
    >>> sum(in_share(0.1, "patch-1", f"call-{number}") for number in range(1000))
    89
    """
    return _hashed(salt, call_id) < int(share * _WHOLE)


def in_slice(share: float, salt: str, length: int, number: int) -> bool:
    """Return whether a call lies in a patched slice, for a configuration that can only be switched for all calls.

    Slice ``k`` holds the calls ``k * length`` to ``(k + 1) * length - 1``. Patched slices are spread evenly by
    systematic sampling with a start that depends on the salt (Cochran 1977, Sampling Techniques, ch. 8): among any
    ``n`` slices in a row they are ``n * share``, give or take one. A load that repeats with the period of the patched
    slices is met at the same place each time; a length that does not divide its period avoids that.

    Examples
    --------
    >>> "".join("x" if in_slice(0.25, "patch-1", 5, number) else "." for number in range(40))
    '..........xxxxx...............xxxxx.....'
    """
    step = int(share * _WHOLE)
    return (number // length * step + _hashed(salt, "")) % _WHOLE + step >= _WHOLE


def _hashed(salt: str, call_id: str) -> int:
    """Return 64 bits; the length before the salt keeps ("a", "bc") and ("ab", "c") apart."""
    text = f"{len(salt)}:{salt}{call_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
