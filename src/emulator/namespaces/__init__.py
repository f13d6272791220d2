"""Namespaces: isolated services of one process, each with a name.

The application of one (`front`), opening and dropping them (`registry`), routing of requests (`routing`), and the
endpoints about them (`http`).
"""
