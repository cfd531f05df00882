"""SQLAlchemy on Holdfast's stores. Nothing of SQLAlchemy is imported before it is used."""
