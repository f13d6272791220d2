"""Files of the user that are too large, endless, or made to take gigabytes: one error, before they are parsed."""

from __future__ import annotations

import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from emulator.contract import user_files

LONG_KEY = f"{'.'.join('a' * 20_000)} = 1\n"
"""`tomllib` takes 1.5 GiB for it."""
SEED = "extcli = 1\n"
READERS = {
    "seed": lambda path: ("seed", "check", path),
    "faults": lambda path: ("fault", "load", path),
    "JSON": lambda path: ("state", "set", "channel", f"@{path}"),
    "codes": lambda path: ("codes", "upload", "--set", f"Hat={path}"),
    "recording": lambda path: ("conform", "--against", path),
    "snapshot": lambda path: ("snapshot", "show", path),
    "extensions": lambda path: ("extension", "list", path),
}


@pytest.mark.parametrize("reader", [name for name in READERS if name != "codes"])
def test_a_device_is_not_read(extcli, reader):
    extcli(*READERS[reader]("/dev/zero"), exits=2)


@pytest.mark.parametrize("reader", ["seed", "faults", "extensions", "profiles"])
def test_a_key_of_many_parts_is_refused(extcli, file, reader):
    path = file(LONG_KEY, "long.toml")
    command, env = (("vote", "get"), {"EXTCLI_CONFIG": path}) if reader == "profiles" else (READERS[reader](path), {})

    assert "more than 100 parts" in extcli(*command, env=env, exits=2).stderr


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        *((text, False) for text in (f"{'a.' * 99}a = 1", f'text = "{"." * 5_000}"', f"# {'.' * 5_000}\na = 1")),
        ('text = """\n' + "one. two. three.\n" * 100 + '"""', False),
        (f"numbers = [{'1.5, ' * 500}]", False),
        *((text, True) for text in (f"{'a . ' * 101}a = 1", f"[{'a.' * 101}a]", f"x = {{ {'a.' * 101}a = 1 }}")),
        ("'a'.\"b\"." * 60 + "c = 1", True),
    ],
)
def test_only_a_key_of_many_parts_is_long(text: str, is_long: bool):
    context = pytest.raises(ValueError, match="a key has more than 100 parts") if is_long else nullcontext()
    with context:
        assert user_files.parse_toml(text)


@pytest.mark.parametrize(
    ("reader", "name", "text"),
    [
        ("seed", "seed.toml", f'{SEED}[[polls]]\nid = "x"\nvotes = {{ U1 = 0x{"f" * 5_000} }}\n'),
        ("codes", "codes.json", f"[{'9' * 20_000}]"),
    ],
)
def test_a_number_of_many_digits_is_an_error(extcli, file, reader, name, text):
    assert name in extcli(*READERS[reader](file(text, name)), exits=2).stderr


@pytest.mark.parametrize("reader", ["seed", "JSON"])
def test_a_document_above_the_limit_is_not_parsed(extcli, file, monkeypatch, reader):
    monkeypatch.setattr(user_files, "MAX_DOCUMENT_BYTES", 1_000)

    assert "1,000 bytes" in extcli(*READERS[reader](file(SEED + "#" * 1_000, "seed.toml")), exits=2).stderr


@pytest.mark.parametrize("name", ["line.json", "line.json.gz"])
def test_a_line_that_no_snapshot_has_is_not_read_to_its_end(extcli, file, name):
    line = b'{"extcli_snapshot":' + b" " * (17 << 20)

    path = file(gzip.compress(line, 1) if name.endswith("gz") else line, name)
    extcli("snapshot", "show", path, exits=2)


def test_a_pipe_is_read_to_its_end(extcli):
    """As the shell passes `<(…)`."""
    reader, writer = os.pipe()
    os.write(writer, SEED.encode())
    os.close(writer)

    result = extcli("seed", "check", f"/dev/fd/{reader}")
    os.close(reader)

    assert 0 == result.exit_code, result.stderr


OUTPUTS = {
    "recording": (("conform", "--only", "W3", "--record"), b'"extcli_conform"'),
    "report": (("simulate", "crowd", "--viewers", "1", "--mix", "1:1", "--poll", "piped", "--report"), b"</html>"),
    "journal": (("logs", "export", "--jsonl"), b'"kind":'),
    "snapshot": (("snapshot", "save"), b'{"extcli_snapshot"'),
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("command", "part"), OUTPUTS.values(), ids=OUTPUTS)
def test_a_pipe_is_written_to(extcli, command, part):
    """As the shell passes `>(…)`."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as piped, ThreadPoolExecutor(1) as pool:
        content = pool.submit(piped.read)
        try:
            extcli(*command, f"/dev/fd/{writer}", exits=0)
        finally:
            os.close(writer)

        assert part in content.result()


def test_a_named_pipe_is_not_replaced(extcli, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    extcli("conform", "--only", "W3", "--junit", str(pipe), exits=0)

    assert pipe.is_fifo()
    assert b"</testsuites>" in os.read(reader, 1 << 16)
    os.close(reader)


# The files that a seed names


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """The folder of a seed, as the command line names it."""
    monkeypatch.chdir(tmp_path)
    Path("seeds").mkdir()
    return Path("seeds")


@pytest.fixture
def seed(folder: Path):
    """Write a seed with a link whose token goes to this file, in a folder of its own."""

    def write(name: str) -> str:
        path = folder / "seed.toml"
        path.write_text(f'{SEED}[[links]]\nchannel = "1001"\nrefresh_token_file = "{name}"\n')
        return str(path)

    return write


@pytest.mark.parametrize(
    "name", ["../victim.rc", "{root}/victim.rc", "link.rc", "folder/victim.rc", "folder/../victim.rc", "loop", "."]
)
def test_a_seed_writes_no_file_outside_its_folder(extcli, seed, tmp_path: Path, name):
    victim = tmp_path / "victim.rc"
    victim.write_text("mine")
    (tmp_path / "seeds" / "link.rc").symlink_to(victim)
    (tmp_path / "other").mkdir()
    (tmp_path / "seeds" / "folder").symlink_to(tmp_path / "other")
    (tmp_path / "seeds" / "loop").symlink_to("loop")

    for verb in ("check", "apply"):
        assert "--trust-seed" in extcli("seed", verb, seed(name.replace("{root}", str(tmp_path))), exits=2).stderr
    assert "mine" == victim.read_text()
    assert [] == [*(tmp_path / "other").iterdir()]


def test_a_file_without_a_token_is_not_replaced(extcli, seed, tmp_path: Path):
    victim = tmp_path / "seeds" / "notes.txt"
    victim.write_text("two words")

    for verb, *options in (("check",), ("apply",), ("apply", "--trust-seed")):
        extcli("seed", verb, seed("notes.txt"), *options, exits=2)
    assert "two words" == victim.read_text()


def test_a_token_is_replaced_and_a_trusted_seed_writes_anywhere(extcli, seed, tmp_path: Path):
    for _ in range(2):
        extcli("seed", "apply", "--trust-seed", seed("../token"), exits=0)

    assert 2 == (tmp_path / "token").read_text().count(".")


@pytest.mark.parametrize("name", ["../codes.txt", "pipe", "/dev/zero", "link/../codes.txt"])
def test_a_seed_reads_codes_in_its_folder_only(extcli, folder: Path, tmp_path: Path, name):
    (tmp_path / "codes.txt").write_text("A-1\n")
    os.mkfifo(folder / "pipe")
    (tmp_path / "other").mkdir()
    (folder / "link").symlink_to(tmp_path / "other")
    seed = folder / "seed.toml"
    seed.write_text(f'{SEED}[[codes]]\nname = "Hat"\nindex = 0\nfile = "{name}"\n')

    assert "codes[0].file: " in extcli("seed", "check", str(seed), exits=2).stderr
