"""Drawings as pure functions: numbers in, SVG or HTML out, with a sentence for those who cannot see it."""
