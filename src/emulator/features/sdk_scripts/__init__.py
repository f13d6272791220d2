"""Scripts for pages on a developer's machine: they lead the published SDK here, and stand in for the platform."""
