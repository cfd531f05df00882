"""The edge of the publisher: the app, logins, the API and the pages."""
