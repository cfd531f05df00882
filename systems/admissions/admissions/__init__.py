"""Admissions: a university portal on Holdfast. Each application is charged once, lost never, and tells where it is."""
