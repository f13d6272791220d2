"""Namespaces: isolated services of one process, each with a name.

The application of one (`service_app`), opening and dropping them with their data (`registry`), and routing of requests
with the endpoints about them (`routing`).
"""
