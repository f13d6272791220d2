"""The WebSocket commands: login, listening, and the interactive session."""
