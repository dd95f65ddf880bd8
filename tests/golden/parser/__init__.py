"""Microsoft's own T-SQL parser (ScriptDom, the grammar of SQL Server 2019), without a server.

`make test` downloads the package that carries the parser and a .NET runtime, pinned in requirements/tsql.txt. Nothing
of it is installed. It checks syntax only: it knows no tables.

    python -m tests.golden.parser FILE...      prints the errors of each file
"""

import ctypes
import os
import re
from itertools import takewhile
from pathlib import Path

FOLDER = Path(__file__).parent
RUNTIME = FOLDER.parents[2] / ".tools" / "tsql" / "mssqlcli" / "mssqltoolsservice" / "bin"

_GO = re.compile(r"(?im)^\s*GO\s*;?\s*$")
_PLACEHOLDER = re.compile(r"%\(\w+\)s|(?<!:):\w+\b")


class Parser:
    """The parser, in a .NET runtime inside this process; a process can have only one."""

    def __init__(self) -> None:
        # The runtime looks for ICU otherwise, which a small machine does not have.
        os.environ.setdefault("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
        self._library = ctypes.CDLL(str(RUNTIME / "libcoreclr.so"))
        assemblies = [*map(str, RUNTIME.glob("*.dll")), str(FOLDER / "Chk.dll")]
        properties = {
            "TRUSTED_PLATFORM_ASSEMBLIES": ":".join(assemblies),
            "APP_PATHS": str(RUNTIME),
            "NATIVE_DLL_SEARCH_DIRECTORIES": str(RUNTIME),
            "System.Globalization.Invariant": "true",
        }
        texts = ctypes.c_char_p * len(properties)
        host, domain, entry = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_void_p()
        self._call(
            "coreclr_initialize",
            str(RUNTIME / "MicrosoftSqlToolsServiceLayer").encode(),
            b"check",
            len(properties),
            texts(*(name.encode() for name in properties)),
            texts(*(value.encode() for value in properties.values())),
            ctypes.byref(host),
            ctypes.byref(domain),
        )
        self._call(
            "coreclr_create_delegate", host, domain, b"Chk, Version=0.0.0.0", b"Chk", b"Check", ctypes.byref(entry)
        )
        self._check = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(entry.value or 0)

    def errors(self, script: str) -> list[str]:
        """Return `line:column number message` for each error in a script of batches that lines with GO end."""
        found: list[str] = []
        lines_before = 0
        for batch in _GO.split(_PLACEHOLDER.sub("@p", script)):
            for error in self._errors_of_batch(batch):
                line, _, rest = error.partition(":")
                found.append(f"{int(line) + lines_before}:{rest}" if line.isdigit() else error)
            lines_before += batch.count("\n")
        return found

    def _errors_of_batch(self, batch: str) -> list[str]:
        given = ctypes.create_string_buffer(batch.encode("utf-16-le") + b"\0\0")
        address = self._check(ctypes.addressof(given))
        pairs = (ctypes.string_at(address + offset, 2) for offset in range(0, 1 << 30, 2))
        answer = b"".join(takewhile(lambda pair: pair != b"\0\0", pairs))
        return answer.decode("utf-16-le").splitlines()

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code < 0:
            raise OSError(f"{name} of the .NET runtime answered {code & 0xFFFFFFFF:#x}")
