"""Amounts as people write them, read as the base units of the API: 16Gi of memory, 500m of a core.

The three functions take a decimal number with an optional suffix: k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei
(powers of 1024). They raise ValueError for anything else, for what is no whole number of base units, and for more than
2**62 - 1 of them. bytes_text and milli_text write what the functions read.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Dict, Mapping

MOST = 2**62 - 1
"""The largest amount that servers take, in base units."""

_SUFFIXES: Dict[str, int] = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
                             "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_LONGEST = 64
_PATTERN = re.compile(r"((?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?)([A-Za-z]*)", re.ASCII)


def in_count(text: str) -> int:
    """Reads an amount of things that are counted: in_count("2k") is 2000."""
    return _parse(text, "things", 1, _SUFFIXES)


def in_milli(text: str) -> int:
    """Reads an amount of the unit milli in thousandths: in_milli("2.5") and in_milli("2500m") are 2500."""
    return _parse(text, "thousandths", 1000, {"m": Fraction(1, 1000), **_SUFFIXES})


def in_bytes(text: str) -> int:
    """Reads an amount of bytes: in_bytes("16Gi") is 17179869184. GiB means the same as Gi; GB has two meanings, and is
    refused."""
    binary = {name + "B": factor for name, factor in _SUFFIXES.items() if name.endswith("i")}
    return _parse(text, "bytes", 1, {**_SUFFIXES, **binary})


def bytes_text(amount: int) -> str:
    """Writes bytes with the suffix that leaves the fewest digits, exactly: "16Gi"."""
    best = str(amount)
    if amount:
        for name, factor in _SUFFIXES.items():
            if amount % factor == 0 and len(str(amount // factor) + name) < len(best):
                best = str(amount // factor) + name
    return best


def milli_text(amount: int) -> str:
    """Writes thousandths as whole things, or with m: "2", "2500m"."""
    return "%dm" % amount if amount % 1000 else str(amount // 1000)


def _parse(text: str, base: str, one: int, suffixes: Mapping[str, "int | Fraction"]) -> int:
    parts = _PATTERN.fullmatch(text) if 0 < len(text) <= _LONGEST else None
    if parts is None:
        raise ValueError("%.64r is not an amount: write a number and perhaps a suffix, such as 25, 250G or 1.5Gi" % text)
    number, suffix = parts.groups()
    has_exponent = "e" in number.lower()
    if suffix and (has_exponent or suffix not in suffixes):
        allowed = "none after an exponent" if has_exponent else " ".join(suffixes)
        raise ValueError("%r is not an amount of %s: suffixes are %s" % (text, base, allowed))
    amount = Fraction(number) * one * (suffixes[suffix] if suffix else 1)
    if amount.denominator != 1:
        raise ValueError("%r is not a whole number of %s" % (text, base))
    if amount > MOST:
        raise ValueError("%r is too large: an amount is at most %d %s" % (text, MOST, base))
    return int(amount)
