"""SQL that brings a database from one schema version to the next, in order of file name."""
