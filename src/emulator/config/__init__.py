"""What an operator can configure: settings, the environment, and the registered extensions."""
