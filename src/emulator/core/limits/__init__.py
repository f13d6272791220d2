"""Limits on a client's requests per second, connections and ids.

Elsewhere: PINs (`features/pins/attempt_limit.py`), unauthenticated connections (`realtime/admission.py`), failed logins
of one connection (`realtime/session.py`), body sizes (`http/dispatch.py`). Defaults are in `config/settings.py` and
`config/environment.py`.
"""
