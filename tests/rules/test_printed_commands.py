"""Words of the commands that are printed for copying, for the shells of each system."""

# ruff: noqa: RUF001
from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import emulator.dashboard
from emulator.contract.shell import join_words, quote_posix, quote_powershell, quote_windows


@pytest.mark.parametrize(
    ("word", "on_posix", "on_windows"),
    [
        ("lunch", "lunch", "lunch"),
        ("", "''", '""'),
        ("two words", "'two words'", '"two words"'),
        ("C:\\data\\x.db", "'C:\\data\\x.db'", "C:\\data\\x.db"),
        ("a;b&c", "'a;b&c'", '"a;b&c"'),
        ("it's", "'it'\"'\"'s'", '"it\'s"'),
        ('{"key": 1}', "'{\"key\": 1}'", "'{\"key\": 1}'"),
        ("a\\", r"'a'\\''", "a\\"),
        ("\\\\n", r"''\\'\n'", "\\\\n"),
        ("it's $5", "'it'\"'\"'s $5'", "'it''s $5'"),
        ("100%", "100%", '"100$([char]37)"'),
        ("$&calc", "'$&calc'", '"$([char]36)&calc"'),
        ('a"b', "'a\"b'", '"a$([char]34)b"'),
        ("a”; calc", "'a”; calc'", "'a”; calc'"),
        ("a”’ calc", "'a”’ calc'", "'a”’’ calc'"),
        ("a\x1b[201~\nls", r"$'a\x1b[201~\x0als'", '"a$([char]27)[201~$([char]10)ls"'),
        ("a\u202eb", r"$'a\xe2\x80\xaeb'", '"a$([char]8238)b"'),
        ("\U000e0041", r"$'\xf3\xa0\x81\x81'", '"$([char]56128)$([char]56385)"'),
        ("a\0b", r"$'a\x5cx00b'", '"a$([char]0)b"'),
        ("'\n!x", r"$'\x27\x0a\x21x'", '"\'$([char]10)!x"'),
    ],
)
def test_a_word_is_quoted_for_the_shells_of_the_system(word: str, on_posix: str, on_windows: str):
    assert (on_posix, on_windows) == (quote_posix(word), quote_windows(word))


def test_a_text_for_powershell_ends_at_no_typographic_quote():
    assert "'a’’; calc ‘‘ it''s'" == quote_powershell("a’; calc ‘ it's")


PRINTABLE = [
    "it's",
    "a\\",
    "a\\'b",
    "\\\\",
    "\\'$(touch ran)\\'",
    '\\\'"; touch ran; "',
    "'; touch ran #",
    "$(touch ran) `touch ran` (touch ran)",
    '"\'"\\"\'',
    "~ * ? [a] {a,b} %self ^x",
    "día ☀ ’“",
]
CONTROLS = {
    "the end of a paste": "\x1b[201~\rtouch ran\r",
    "a line feed": "x\ntouch ran\n",
    "CR": "x\rtouch ran\r",
    "a tab": "x\ty",
    "C1": "\x9b201~ touch ran",
    "the direction of text": "\u202e touch ran",
    "quotes": "\n'; touch ran; '\\'; touch ran; \"; touch ran #",
    "NUL": "a\0; touch ran",
    "DEL and ^C ^D ^U ^V ^Z": "\x7f\x03\x04\x15\x16\x1a touch ran",
    "the ends of lines of Unicode": "\u2028\u2029\x85touch ran",
    "an invisible tag, and half a character": "\U000e0041\ud800'\\",
}
SHELLS = ["bash", "zsh", "dash", "fish"]


def words_in(shell: str, line: str, folder: Path) -> list[str] | None:
    """Return the arguments that a shell passes on for a line; `None` if it refuses the line."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    command = [shell, "-c", f"printf '%s\\000' {line}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)
    assert [] == list(folder.iterdir())
    return [each.decode(errors="replace") for each in done.stdout.split(b"\0")[:-1]] if not done.returncode else None


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_reads_printable_words_as_they_are(shell: str, tmp_path: Path):
    assert PRINTABLE == words_in(shell, join_words(PRINTABLE, quote_posix), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("word", CONTROLS.values(), ids=CONTROLS)
def test_no_character_of_a_word_reaches_the_terminal_or_ends_the_word(shell: str, word: str, tmp_path: Path):
    line = quote_posix(word)

    assert line.isprintable()
    read = words_in(shell, line, tmp_path)
    if shell in ("bash", "zsh"):
        assert [word.replace("\0", "\\x00").encode(errors="surrogatepass").decode(errors="replace")] == read
    else:
        assert not read or len(read) == 1  # fish refuses the line


@pytest.mark.slow
def test_the_dashboards_script_quotes_as_the_service_does(tmp_path: Path):
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    rules = (Path(emulator.dashboard.__file__).parent / "static" / "shell.js").read_text()
    words = ["", "a", "100%", "$&calc", "a”’ $", "C:\\x", "a@b,c", 'a"', '"a"', *PRINTABLE, *CONTROLS.values()]
    # Node's `TextEncoder` has no bytes for half a character.
    words = [word.replace("\ud800", "") for word in words]
    script = f"{rules}\nconst words = {json.dumps(words)};\n"
    script += "console.log(JSON.stringify([words.map(posix), words.map(windows)]));"

    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=60, check=True)

    assert [[quote_posix(word) for word in words], [quote_windows(word) for word in words]] == json.loads(done.stdout)
