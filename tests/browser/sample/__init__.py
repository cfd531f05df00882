"""A small app that shows every part of the kit for pages: for the tests, and for the pictures in the docs."""
