"""Events that pages hand to the games of their channel."""
