"""The parts of an emulator: control and instruments for tests, in folders of the same form as features."""
