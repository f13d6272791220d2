"""Namespaces: isolated services of one process, each with a name: opening and dropping them (`registry`), routing of
requests (`routing`), and the endpoints about them (`http`).
"""
