"""The API: every verb of the desk as a route under /api, with strict models, problem documents and pages by key."""
