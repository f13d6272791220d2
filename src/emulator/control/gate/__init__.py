"""Who may call the control API: programs on this machine, never web pages of another origin."""
