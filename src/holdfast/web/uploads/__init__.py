"""Uploads: forms with files, streamed into the staging of blobs, with limits, and with the type that their content has."""
