"""Services for those who operate a cluster."""
