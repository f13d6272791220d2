"""Scripts for pages: they connect the published SDK to this service, and replace the platform's helper."""
