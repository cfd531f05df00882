"""JSON for programs: each verb of the desk is a route, and what a route needs stands in `web/allowed.py`."""
