"""W5: functions of your own, in Python and PowerShell; a broken file is reported and stops nothing."""

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from matoolkit.domain.messages import ResultStatus
from matoolkit.errors import UnsafeFolder
from matoolkit.worker import Registry
from matoolkit.worker.custom import BrokenFile, register_custom
from tests.workshop import Workshop

pytestmark = pytest.mark.on("sqlite")

PYTHON = '''
from matoolkit.worker import Context, FunctionFailed, Secret, function

@function("Set-HomeFolder")
def set_home_folder(context: Context, user_id: str, quota: int = 5, key: Secret = "") -> dict[str, int]:
    """Give somebody a home folder."""
    if user_id == "nobody":
        raise FunctionFailed(f"nobody has {key}", "NoSuchUser")
    return {user_id: quota}
'''

SCRIPT = """<#
.SYNOPSIS
    Tells the help desk
    about somebody.

.PARAMETER UserId
    string, mandatory. Whom it is about: not secret.

.PARAMETER Copies
    int. How often.

.PARAMETER Key
    secret. What opens the door.
#>
"""

# Stands in for PowerShell: what it would run is Python, below the script's help.
PWSH = f"""#!{sys.executable}
import sys
assert sys.argv[1:4] == ["-NoProfile", "-NonInteractive", "-File"], sys.argv
exec(open(sys.argv[4], encoding="utf-8").read().split("#>", 1)[1])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "functions"
    folder.mkdir()
    return folder


@pytest.fixture
def pwsh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "pwsh"
    program.parent.mkdir()
    program.write_text(PWSH, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def result(workshop: Workshop, name: str, **parameters: Any) -> Any:
    return workshop.result_of(name, **parameters)


def test_w5_a_python_file_brings_its_functions(workshop: Workshop, folder: Path) -> None:
    write(folder, "home-folders.py", PYTHON)
    assert register_custom(workshop.registry, folder) == []
    assert workshop.registry.find("set-homefolder").doc == "Give somebody a home folder."
    assert result(workshop, "Set-HomeFolder", UserId="ada", Quota="7").result == {"ada": 7}
    assert result(workshop, "Set-HomeFolder", UserId="nobody", Key="top-secret").error.message == "nobody has ***"


def test_w5_files_can_share_code(workshop: Workshop, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    write(folder, "_quotas_of_test.py", "QUOTA = 9\n")
    write(
        folder,
        "home.py",
        PYTHON.replace("quota: int = 5", "quota: int = QUOTA").replace(
            "from matoolkit", "from _quotas_of_test import QUOTA\nfrom matoolkit", 1
        ),
    )
    assert register_custom(workshop.registry, folder) == []
    assert result(workshop, "Set-HomeFolder", UserId="ada").result == {"ada": 9}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def broken(:\n", "SyntaxError: invalid syntax"),
        ("import not_there_at_all\n", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("raise SystemExit(1)\n", "SystemExit: 1"),
        ("x = 1\n", "it has no function that is decorated with @function"),
        (PYTHON.replace("user_id: str", "user_id"), "TypeError: parameter user_id needs a type"),
        (PYTHON.replace("Set-HomeFolder", "Do-It"), "there is a function Do-It already"),
        ("\x00", "source code string cannot contain null bytes"),
    ],
)
def test_w5_a_broken_file_is_reported_and_stops_nothing(workshop: Workshop, folder: Path, text: str, why: str) -> None:
    path = write(folder, "a_broken.py", text)
    write(folder, "b_good.py", PYTHON)
    (broken,) = register_custom(workshop.registry, folder)
    assert broken.path == path
    assert why in broken.why
    assert result(workshop, "Set-HomeFolder", UserId="ada").status is ResultStatus.SUCCESS


def test_w5_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    assert register_custom(Registry(), folder) == [BrokenFile(folder, "no such file or directory")]


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_w5_a_folder_that_others_may_write_is_refused_with_how_to_fix_it(
    workshop: Workshop, folder: Path, mode: int
) -> None:
    write(folder, "home.py", "raise SystemExit('executed')\n")
    folder.chmod(mode)
    with pytest.raises(UnsafeFolder, match="other users may write to it") as refused:
        register_custom(workshop.registry, folder)
    assert f"`chmod go-w {folder}`" in str(refused.value.hint)
    folder.chmod(0o755)
    assert len(register_custom(workshop.registry, folder)) == 1


def test_w5_a_file_that_others_may_write_is_reported_and_not_executed(workshop: Workshop, folder: Path) -> None:
    path = write(folder, "home.py", PYTHON)
    path.chmod(0o666)
    (broken,) = register_custom(workshop.registry, folder)
    assert "other users may write to it" in broken.why
    assert f"chmod go-w {path}" in broken.why


def test_w5_a_script_is_a_function_with_the_parameters_of_its_help(
    workshop: Workshop, folder: Path, pwsh: Path
) -> None:
    code = "import json\ngiven = json.load(sys.stdin)\nprint(json.dumps({'Given': given, 'Complete': True}))\n"
    write(folder, "Send-HelpDeskNote.ps1", SCRIPT + code)
    assert register_custom(workshop.registry, folder) == []
    function = workshop.registry.find("Send-HelpDeskNote")
    assert function.doc == "Tells the help desk about somebody."
    assert [(one.name, one.type, one.is_mandatory, one.is_secret) for one in function.parameters] == [
        ("UserId", "string", True, False),
        ("Copies", "integer", False, False),
        ("Key", "string", False, True),
    ]
    workshop.environ = {"MATOOLKIT_SECRET_KEY": "top-secret"}
    done = result(workshop, "Send-HelpDeskNote", userid="ada", Copies="2", Key="secret:KEY")
    assert done.result == {"Given": {"UserId": "ada", "Copies": 2, "Key": "***"}, "Complete": True}
    assert result(workshop, "Send-HelpDeskNote", UserID="ada", Other=1).error.type == "InvalidParameters"


def test_w5_a_script_sees_its_job(workshop: Workshop, folder: Path, pwsh: Path) -> None:
    code = "import json, os\nprint(json.dumps({'Job': json.loads(os.environ['WORKER_JOB'])}))\n"
    write(folder, "Send-HelpDeskNote.ps1", SCRIPT + code)
    register_custom(workshop.registry, folder)
    seen = result(workshop, "Send-HelpDeskNote", UserId="ada").result["Job"]
    assert (seen["Id"], seen["BatchId"], seen["Attempt"]) == ("step-1-attempt-1", 42, 1)
    assert seen["MemberKey"] is None


@pytest.mark.parametrize(
    ("code", "type_", "message", "is_throttled"),
    [
        ("sys.exit('no such ticket')", "ScriptFailed", "no such ticket", False),
        ("sys.exit(4)", "ScriptFailed", "Send-Note ended with exit code 4", False),
        ("print('busy', file=sys.stderr); sys.exit(75)", "Throttled", "busy", True),
        ("print('Done!')", "ScriptFailed", "Send-Note wrote something that is not JSON", False),
        ("sys.exit('the key is ' + sys.stdin.read())", "ScriptFailed", "***", False),
    ],
)
def test_w5_a_script_that_fails_is_told(
    workshop: Workshop, folder: Path, pwsh: Path, code: str, type_: str, message: str, is_throttled: bool
) -> None:
    write(folder, "Send-Note.ps1", SCRIPT + code)
    register_custom(workshop.registry, folder)
    error = result(workshop, "Send-Note", UserId="ada", Key="top-secret").error
    assert (error.type, error.is_throttled) == (type_, is_throttled)
    assert message in error.message
    assert "top-secret" not in error.message


def test_w5_a_script_that_says_nothing_returns_nothing(workshop: Workshop, folder: Path, pwsh: Path) -> None:
    write(folder, "Send-Note.ps1", SCRIPT)
    register_custom(workshop.registry, folder)
    done = result(workshop, "Send-Note", UserId="ada")
    assert (done.status, done.result, done.result_type) == (ResultStatus.SUCCESS, None, None)


def test_w5_a_program_that_is_gone_is_told(workshop: Workshop, folder: Path, pwsh: Path) -> None:
    write(folder, "Send-Note.ps1", SCRIPT)
    register_custom(workshop.registry, folder)
    pwsh.unlink()
    assert "could not be started" in result(workshop, "Send-Note", UserId="ada").error.message


def test_w5_a_script_needs_powershell_and_a_proper_name(
    workshop: Workshop, folder: Path, pwsh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "note.ps1", SCRIPT)
    (broken,) = register_custom(workshop.registry, folder)
    assert "Verb-Noun.ps1" in broken.why
    monkeypatch.setenv("PATH", "")
    (broken,) = register_custom(workshop.registry, folder)
    assert broken.why == "pwsh is not installed here"


EXAMPLES = Path(__file__).parents[2] / "examples" / "functions"


def test_w5_the_examples_can_be_used(workshop: Workshop, pwsh: Path) -> None:
    assert register_custom(workshop.registry, EXAMPLES) == []
    names = {path.stem for path in EXAMPLES.glob("*.ps1")} | {"Set-HomeFolder"}
    assert len(names) == 3
    for name in names:
        assert workshop.registry.find(name).doc
