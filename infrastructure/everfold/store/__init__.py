"""Event stores on SQLite and PostgreSQL, behind one port."""
