"""The secret: derive, key, envelope, ring, commitment."""
