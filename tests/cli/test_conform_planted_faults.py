"""`extcli conform` finds faults planted in the service, and names the rules that they break."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from emulator.config.environment import PRODUCTION
from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from extcli.conform import run
from extcli.conform.run import all_rules
from support import planted_data, planted_votes, planted_wire  # noqa: F401 - they fill the list
from support.examples import spread
from support.executed_code import Executed, Recorder
from support.planted_faults import FAULTS, Patch, PlantedFault
from support.program import SECRET_BASE64
from support.service import CLIENT_ID, SECRET, live_server

pytestmark = pytest.mark.long

CONFORM = ("conform", "--writes", "--yes", "--whole-extension", "-o", "json")
SERVICE = Settings(PRODUCTION, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})
EXECUTED: dict[str, Executed] = {}
"""What the service executes for each rule, and under an empty name at its start. Recorded once per test process."""


@pytest.fixture
def executed(extcli) -> dict[str, Executed]:
    if not EXECUTED:
        recorder = Recorder()
        with pytest.MonkeyPatch.context() as patch, recorder.active():
            EXECUTED[""] = recorder.current
            probe = run.probe

            def recorded(rule, target):
                EXECUTED[rule.name] = recorder.begin()
                return probe(rule, target)

            patch.setattr(run, "probe", recorded)
            with live_server() as live:
                assert 0 == extcli(*CONFORM, env={"EXTCLI_URL": live.url}).exit_code
    return EXECUTED


def concerned(patch: Patch, fault: PlantedFault, executed: dict[str, Executed]) -> Sequence[str]:
    """Return the options that select the rules that a fault may break: for the other rules, none of its code runs."""
    if fault.production or patch.concerns(executed[""]):
        return ()
    return [f"--only={name}" for name, code in executed.items() if patch.concerns(code)]


@pytest.mark.parametrize("fault", spread(FAULTS, 12), ids=lambda fault: fault.name)
def test_a_planted_fault_fails_exactly_its_rules(extcli, executed: dict[str, Executed], fault: PlantedFault):
    with pytest.MonkeyPatch.context() as original:
        patch = Patch(original)
        fault.plant(patch)
        with live_server(SERVICE if fault.production else None) as live:
            env = {"EXTCLI_URL": live.url, **({"EXTCLI_SECRET": SECRET_BASE64} if fault.production else {})}
            result = extcli(*CONFORM, *concerned(patch, fault, executed), env=env)

    found = {rule["rule"]: rule for rule in result.json["rules"] if rule["status"] not in ("pass", "skipped")}
    assert fault.finds == set(found), found
    assert ({"fail"}, 7) == ({rule["status"] for rule in found.values()}, result.exit_code)


def test_there_are_25_planted_faults_and_their_rules_exist():
    names = {rule.name for rule in all_rules()}

    assert 25 <= len(FAULTS) == len({fault.name for fault in FAULTS})
    assert {} == {fault.name: fault.finds - names for fault in FAULTS if not fault.finds or fault.finds - names}
