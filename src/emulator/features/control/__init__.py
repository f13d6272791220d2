"""Monitoring and control of a running service: `/_emulator/…` (`operations.md`)."""
