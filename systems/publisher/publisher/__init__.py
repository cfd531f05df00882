"""Scheduled publishing to DeviantArt: each post at its time, once."""
