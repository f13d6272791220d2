"""The service: a local twin of the hosted extension backend. `app.py` wires it; read that first."""
