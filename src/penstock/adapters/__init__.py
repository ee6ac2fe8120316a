"""Faces for other libraries, thin, each in an extra of its own."""
