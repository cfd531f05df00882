"""The edge of the portal: the app with what stands around it, the API for programs, and pages for people."""
