"""What a person can do and see: each verb checks, and changes rows, jobs and events in one transaction. API and pages both ask here."""
