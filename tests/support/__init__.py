"""What tests stand on: servers, a browser, databases, a Ray host, and fixtures that more than one folder uses."""
