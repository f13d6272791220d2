"""The WebSocket commands: PIN login, listening, and the interactive session."""
