"""Namespaces: isolated services of one process, each with a name.

The application of one (`front`), the data of all (`storage`), opening and dropping them (`registry`), and routing of
requests with the endpoints about them (`routing`).
"""
