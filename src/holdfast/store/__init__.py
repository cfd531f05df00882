"""The storage boundary: records, states, ports and migrations; one folder for each database below."""
