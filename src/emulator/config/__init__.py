"""The operator's configuration: settings, the environment, and the registered extensions."""
