"""HTTP: how a call reaches a feature's endpoint and how its answer leaves. Knows no feature."""
