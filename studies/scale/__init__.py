"""What large numbers cost: vectors, requests, tenants, keys."""
