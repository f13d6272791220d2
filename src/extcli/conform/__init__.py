"""Rules that a service must keep, probed from outside, for `extcli conform`."""
