-- Which migrations ran, and when (milliseconds since 1970 UTC).
CREATE TABLE everfold_schema (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    applied_ms INTEGER NOT NULL
);

-- The log. Its name and columns are those that the eventsourcing library reads; `rowid` is the
-- position in the global order, and AUTOINCREMENT never gives one out twice, not even after a
-- stream was deleted.
CREATE TABLE stored_events (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    originator_id TEXT NOT NULL,
    originator_version INTEGER NOT NULL,
    topic TEXT NOT NULL,
    state BLOB NOT NULL,
    UNIQUE (originator_id, originator_version)
);

CREATE TABLE append_keys (
    originator_id TEXT NOT NULL,
    key BLOB NOT NULL,
    first_version INTEGER NOT NULL,
    row_count INTEGER NOT NULL,
    PRIMARY KEY (originator_id, key)
) WITHOUT ROWID;

CREATE TABLE deleted_streams (
    originator_id TEXT NOT NULL PRIMARY KEY,
    last_version INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE stored_snapshots (
    originator_id TEXT NOT NULL,
    originator_version INTEGER NOT NULL,
    topic TEXT NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
);
