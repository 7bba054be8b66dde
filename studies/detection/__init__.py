"""Which copies are caught (``studies.detection``), and how strong decoy-1 is (``studies.detection.statistic``)."""
