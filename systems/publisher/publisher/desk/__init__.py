"""What a person can do and see: each verb checks, and changes rows and jobs in one transaction. API and pages both ask here."""
