"""From dates to messages: who is in which batch, and what is due."""
