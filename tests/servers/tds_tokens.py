"""What a TDS 7.4 server sends: the tokens of an answer, and values of the types that Dataverse has."""

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

_COLLATION = bytes([0x09, 0x04, 0xD0, 0x00, 0x34])
_DONE, _ERROR, _ENVIRONMENT, _LOGIN_ACK, _FEATURES_ACK, _COLUMNS, _ROW = 0xFD, 0xAA, 0xE3, 0xAD, 0xAE, 0x81, 0xD1
_DONE_PROCEDURE, _DONE_IN_PROCEDURE, _RETURN_STATUS, _RETURN_VALUE = 0xFE, 0xFF, 0x79, 0xAC
_DATABASE, _PACKET_SIZE, _SQL_COLLATION = 1, 4, 7
_FEDERATED_SIGN_IN = 2
_BEGIN, _COMMIT = 5, 7
_BEGAN, _COMMITTED, _ROLLED_BACK = 8, 9, 10
_SCALE = 7  # tenths of a microsecond


def done(rows: int | None = None, *, failed: bool = False, attention: bool = False) -> bytes:
    status = (0x10 if rows is not None else 0) | (0x02 if failed else 0) | (0x20 if attention else 0)
    return struct.pack("<BHHQ", _DONE, status, 0xC1, rows or 0)


def error(number: int, message: str, severity: int = 16) -> bytes:
    body = struct.pack("<iBB", number, 1, severity) + _long_text(message) + _text("org") + _text("")
    return _token(_ERROR, body + struct.pack("<i", 1))


def signed_in(database: str, *, by_token: bool) -> bytes:
    features = bytes([_FEATURES_ACK, _FEDERATED_SIGN_IN, 0, 0, 0, 0, 0xFF])
    program = b"\x01\x74\x00\x00\x04" + _text("Microsoft SQL Server") + bytes([16, 0, 3, 232])
    return (
        _token(_ENVIRONMENT, bytes([_DATABASE]) + _text(database) + _text(""))
        + _token(_ENVIRONMENT, bytes([_SQL_COLLATION, len(_COLLATION)]) + _COLLATION + b"\x00")
        + _token(_LOGIN_ACK, program)
        + _token(_ENVIRONMENT, bytes([_PACKET_SIZE]) + _text("4096") + _text("4096"))
        + (features if by_token else b"")
        + done()
    )


def called(*, with_handle: bool) -> bytes:
    """End a call that changed one row; a statement that was prepared has a handle, which is a number."""
    status = bytes([_RETURN_STATUS]) + bytes(4)
    handle = bytes([_RETURN_VALUE]) + (struct.pack("<HBBIH", 0, 0, 1, 0, 0) + b"\x26\x04\x04" + struct.pack("<i", 1))
    changed = struct.pack("<BHHQ", _DONE_IN_PROCEDURE, 0x11, 0xC3, 1)
    return changed + status + (handle if with_handle else b"") + struct.pack("<BHHQ", _DONE_PROCEDURE, 0, 0xE0, 0)


def transaction(request: int) -> bytes:
    """Confirm that a transaction began, or ended; there is only one."""
    transaction = (1).to_bytes(8, "little")
    if request == _BEGIN:
        return _token(_ENVIRONMENT, bytes([_BEGAN, 8]) + transaction + b"\x00") + done()
    ended = _COMMITTED if request == _COMMIT else _ROLLED_BACK
    return _token(_ENVIRONMENT, bytes([ended, 0, 8]) + transaction) + done()


def columns(described: Sequence[tuple[str, str]]) -> bytes:
    nullable = struct.pack("<IH", 0, 9)
    body = b"".join(nullable + _TYPES[kind][0] + _text(name) for name, kind in described)
    return bytes([_COLUMNS]) + struct.pack("<H", len(described)) + body


def row(described: Sequence[tuple[str, str]], values: Sequence[Any]) -> bytes:
    cells = (_TYPES[kind][1](value) for (_, kind), value in zip(described, values, strict=True))
    return bytes([_ROW]) + b"".join(cells)


def _token(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + struct.pack("<H", len(body)) + body


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("utf-16-le")


def _long_text(text: str) -> bytes:
    return struct.pack("<H", len(text)) + text.encode("utf-16-le")


def _short(write: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Write values with a length of one byte; null has length zero."""

    def written(value: Any) -> bytes:
        data = b"" if value is None else write(value)
        return bytes([len(data)]) + data

    return written


def _nvarchar(value: str | None) -> bytes:
    data = (value or "").encode("utf-16-le")
    return b"\xff\xff" if value is None else struct.pack("<H", len(data)) + data


def _unlimited(data: bytes | None) -> bytes:
    """Write a value of any length: its whole length, one part if there is any, and the end."""
    if data is None:
        return b"\xff" * 8
    part = struct.pack("<I", len(data)) + data if data else b""
    return struct.pack("<Q", len(data)) + part + bytes(4)


def _decimal(value: Decimal) -> bytes:
    digits = int(value.copy_abs().scaleb(10, Context(prec=38)))
    return bytes([value >= 0]) + digits.to_bytes(16, "little")


def _days(value: date) -> bytes:
    return (value.toordinal() - 1).to_bytes(3, "little")


def _datetime2(value: datetime) -> bytes:
    ticks = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**7 + value.microsecond * 10
    return ticks.to_bytes(5, "little") + _days(value.date())


def _datetimeoffset(value: datetime) -> bytes:
    offset = value.utcoffset()
    assert offset is not None
    return _datetime2(value.astimezone(UTC)) + struct.pack("<h", int(offset.total_seconds()) // 60)


def _datetime(value: datetime) -> bytes:
    days = value.date().toordinal() - date(1900, 1, 1).toordinal()
    return struct.pack("<iI", days, ((value.hour * 60 + value.minute) * 60 + value.second) * 300)


_TYPES: dict[str, tuple[bytes, Callable[[Any], bytes]]] = {
    "int": (b"\x26\x04", _short(lambda value: struct.pack("<i", value))),
    "bigint": (b"\x26\x08", _short(lambda value: struct.pack("<q", value))),
    "bit": (b"\x68\x01", _short(lambda value: bytes([value]))),
    "float": (b"\x6d\x08", _short(lambda value: struct.pack("<d", value))),
    "decimal": (b"\x6a\x11\x26\x0a", _short(_decimal)),
    "uniqueidentifier": (b"\x24\x10", _short(lambda value: UUID(str(value)).bytes_le)),
    "date": (b"\x28", _short(_days)),
    "datetime": (b"\x6f\x08", _short(_datetime)),
    "datetime2": (bytes([0x2A, _SCALE]), _short(_datetime2)),
    "datetimeoffset": (bytes([0x2B, _SCALE]), _short(_datetimeoffset)),
    "nvarchar": (b"\xe7" + struct.pack("<H", 8000) + _COLLATION, _nvarchar),
    "ntext": (
        b"\xe7\xff\xff" + _COLLATION,
        lambda value: _unlimited(None if value is None else value.encode("utf-16-le")),
    ),
    "varbinary": (b"\xa5\xff\xff", _unlimited),
}
