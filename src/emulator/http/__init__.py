"""HTTP: paths and aliases (`front`), checks of the caller (`access`), the call of an endpoint (`dispatch`),
declarations (`endpoint`), journal entries (`recording`), responses, OpenAPI. Independent of the features.
"""
