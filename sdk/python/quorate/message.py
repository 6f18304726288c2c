"""The base of all messages: conversion to and from the JSON mapping of protobuf.

Names, types and defaults of the fields say everything: a field without presence is left out while it has its zero
value, an optional one while it is None. Fields and enum values that this version does not know are ignored, so a newer
server can answer an older client.
"""

from __future__ import annotations

import base64
import dataclasses
import re
import typing
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any, Callable, Dict, NamedTuple, Type, TypeVar

M = TypeVar("M", bound="Message")


class _Field(NamedTuple):
    """How one field is converted."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_optional: bool


class Message:
    """A message of the API. Messages compare by their content, and dataclasses.replace makes changed copies."""

    def to_json(self) -> Dict[str, Any]:
        """Returns the message in the JSON mapping of protobuf, without fields that are not set."""
        out: Dict[str, Any] = {}
        for json_name, plan in _fields_of(type(self)).items():
            value = getattr(self, plan.name)
            if value is None or not plan.is_optional and _is_zero(value):
                continue
            try:
                out[json_name] = plan.encode(value)
            except (TypeError, ValueError, AttributeError) as e:
                raise TypeError("%s.%s: %s" % (type(self).__name__, plan.name, e)) from e
        return out

    @classmethod
    def from_json(cls: Type[M], value: Dict[str, Any]) -> M:
        """Returns the message of a JSON object. Raises ValueError for a value of another type than the field's."""
        if not isinstance(value, dict):
            raise ValueError("%s: a JSON object is expected" % cls.__name__)
        plans = _fields_of(cls)
        values: Dict[str, Any] = {}
        for json_name, content in value.items():
            plan = plans.get(json_name)
            if plan is None or content is None:
                continue
            try:
                values[plan.name] = plan.decode(content)
            except (TypeError, ValueError) as e:
                raise ValueError("%s.%s: %s" % (cls.__name__, plan.name, e)) from e
        return cls(**values)


def _is_zero(value: Any) -> bool:
    return not value or isinstance(value, Enum) and value.name == "UNSPECIFIED"


_plans: Dict[type, Dict[str, _Field]] = {}


def _fields_of(cls: type) -> Dict[str, _Field]:
    """Returns the fields of a message by their names in JSON."""
    plans = _plans.get(cls)
    if plans is None:
        hints = typing.get_type_hints(cls)
        plans = {}
        for field in dataclasses.fields(cls):
            hint, is_optional = hints[field.name], False
            args = typing.get_args(hint)
            if type(None) in args:
                hint, is_optional = args[0], True
            encode, decode = _conversions(hint)
            plans[_json_name(field.name)] = _Field(field.name, encode, decode, is_optional)
        _plans[cls] = plans
    return plans


def _json_name(name: str) -> str:
    return re.sub("_([a-z0-9])", lambda m: m.group(1).upper(), name.rstrip("_"))


def _conversions(hint: Any) -> Any:
    """Returns how a value of a type is encoded, and how it is decoded."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        encode, decode = _conversions(args[0])
        return lambda v: [encode(x) for x in _sequence(v)], lambda v: [decode(x) for x in v]
    if origin is dict:
        encode, decode = _conversions(args[1])
        return lambda v: {str(k): encode(x) for k, x in v.items()}, lambda v: {k: decode(x) for k, x in v.items()}
    if issubclass(hint, Message):
        return lambda v: v.to_json(), hint.from_json
    if issubclass(hint, Enum):
        return lambda v: _encode_enum(hint, v), lambda v: _decode_enum(hint, v)
    return _SCALARS[hint]


def _sequence(value: Any) -> Any:
    if isinstance(value, str):
        raise TypeError("a list is expected, not a string")
    return value


def _encode_enum(hint: Any, value: Any) -> Any:
    if isinstance(value, Enum) and not isinstance(value, hint):
        raise TypeError("%s is expected, not %s" % (hint.__name__, type(value).__name__))
    return value.value if isinstance(value, Enum) else value


def _decode_enum(hint: Any, value: Any) -> Any:
    try:
        return hint(value)
    except ValueError:
        return value  # of a newer server


def _encode_int(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("an int is expected, not %s" % type(value).__name__)
    return value


def _encode_str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a str is expected, not %s" % type(value).__name__)
    return value


def _encode_time(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("the time has no time zone")
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _decode_time(text: str) -> datetime:
    """Reads a time to the microsecond; datetime has no nanoseconds."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z", text)
    if found is None:
        raise ValueError("%r is not a time" % text)
    whole = datetime.strptime(found.group(1), "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return whole + timedelta(microseconds=int((found.group(2) or "0").ljust(9, "0")[:6]))


def _encode_span(value: timedelta) -> str:
    whole, part = divmod(abs(value) // timedelta(microseconds=1), 1000000)
    return "%s%d.%06ds" % ("-" if value < timedelta(0) else "", whole, part)


def _decode_span(text: str) -> timedelta:
    if not text.endswith("s"):
        raise ValueError("%r is not a duration" % text)
    return timedelta(seconds=float(text[:-1]))


def _decode_bytes(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))


def _same(value: Any) -> Any:
    return value


_SCALARS: Dict[type, Any] = {
    str: (_encode_str, _same),
    bool: (bool, _same),
    int: (_encode_int, int),
    bytes: (lambda v: base64.b64encode(v).decode("ascii"), _decode_bytes),
    datetime: (_encode_time, _decode_time),
    timedelta: (_encode_span, _decode_span),
}
