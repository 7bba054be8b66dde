"""What the gateway costs (``studies.gateway``), and whether its timing tells anything (``studies.gateway.timing``)."""
