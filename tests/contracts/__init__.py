"""Batteries: what every defense, every attack and every stealer promises, whatever it is made of."""
