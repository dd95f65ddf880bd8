"""Which of its two native drivers mssql-python uses in the tests."""

import ctypes
import os
import sys

_CHOICE = "MSSQL_PYTHON_NATIVE_PROVIDER"


def choose_driver() -> str:
    """Choose the driver that is the default, or, where the system lacks a library that it needs, the other one.

    mssql-python makes up its mind once in a process, at the first connection.
    """
    if _CHOICE not in os.environ and not _has_libltdl():
        os.environ[_CHOICE] = "mssql-odbc"
    return os.environ.get(_CHOICE, "msodbcsql18")


def _has_libltdl() -> bool:
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL("libltdl.so.7")
    except OSError:
        return False
    return True
