"""A virus scanner as a simulator: clamd's protocol, the antivirus makers' test file, and misbehaviour on demand."""
