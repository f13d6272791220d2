"""Checks of a service, of the configuration and of this machine, for `extcli doctor`."""
