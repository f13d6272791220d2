"""HTTP: declared endpoints, the checks and the call of one, bodies, responses, and the OpenAPI document.

It knows no feature. `endpoint` declares, `dispatch` calls, `access` checks the caller.
"""
