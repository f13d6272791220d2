"""The operator's configuration: settings of `extcli serve`, sandbox and production as values (`environment`), and the
registered extensions.
"""
