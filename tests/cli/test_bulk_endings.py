"""How many lines end early: nobody reads on, the service dies, something else answers."""

from __future__ import annotations

from conftest import SECRET_TEXT, answer

SIGNED = {"EXTCLI_SECRET": SECRET_TEXT}


def test_a_reader_of_refusals_that_leaves_early_is_no_failure(shell):
    """`extcli vote cast --from - -o jsonl | head -1`"""
    process = shell("vote", "cast", "--from", "-", "-o", "jsonl")
    process.stdin.write(b"U1,300\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b'{"line":1')
    process.stdout.close()
    process.stdin.write(b"U1,300\n" * 2000)
    process.stdin.close()

    assert 0 == process.wait(timeout=20)
    assert b"" == process.stderr.read()


def test_a_service_that_dies_while_tokens_are_fetched_is_one_error_not_two(shell, tmp_path, answering):
    """Tokens for the seventh batch fail while the first six wait for the service to take the first vote."""
    (tmp_path / "ballots.csv").write_text("U1,1\n" * 4000)
    tokens = [answer("200 OK", '{"token":"a.b.c"}')] * 6
    url = answering(*tokens, answer("503 Service Unavailable"), hold=True)
    arguments = ("--from", str(tmp_path / "ballots.csv"), "--url", url, "--concurrency", "1", "--timeout", "500ms")

    process = shell("vote", "cast", *arguments)
    _, stderr = process.communicate(timeout=20)

    assert 3 == process.returncode
    assert f"extcli: {url} took too long to answer" == stderr.decode().splitlines()[0]
    assert 2 == len(stderr.splitlines())
