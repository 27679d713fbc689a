"""Pages and feeds that research can read: invented articles in every language of the desk."""
