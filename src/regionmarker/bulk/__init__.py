"""Files in, marked files out."""
