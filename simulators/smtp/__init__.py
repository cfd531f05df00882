"""A mail server as a simulator: it takes mails for everybody, shows them, and misbehaves on demand."""
