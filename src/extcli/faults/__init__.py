"""Faults: failures that an emulator produces on purpose, as options of commands, tables of files and tests."""
