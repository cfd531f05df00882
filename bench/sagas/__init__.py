"""How fast sagas go, beside DBOS and what the store itself could do, and what 100,000 of them cost while they sleep."""
