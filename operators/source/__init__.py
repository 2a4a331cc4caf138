"""Source nodes: from files, services and tables to op rows."""
