-- Run with the store's schema as the only search path.

-- Which migrations ran, and when (milliseconds since 1970 UTC).
CREATE TABLE everfold_schema (
    version integer NOT NULL PRIMARY KEY,
    name text NOT NULL,
    applied_ms bigint NOT NULL
);

-- The log. Its name and columns are those that the eventsourcing library reads; the 8-byte
-- columns come first, so that no row is padded. Ids compare by code point.
CREATE TABLE stored_events (
    notification_id bigserial NOT NULL,
    originator_version bigint NOT NULL,
    originator_id text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
);

CREATE UNIQUE INDEX stored_events_notification_id_idx ON stored_events (notification_id);

CREATE TABLE append_keys (
    originator_id text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    first_version bigint NOT NULL,
    row_count integer NOT NULL,
    PRIMARY KEY (originator_id, key)
);

CREATE TABLE deleted_streams (
    originator_id text COLLATE "C" PRIMARY KEY,
    last_version bigint NOT NULL
);

CREATE TABLE stored_snapshots (
    originator_version bigint NOT NULL,
    originator_id text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
);

-- lz4 takes a tenth of the time of the default on large states; a server may be built without it.
DO $$
BEGIN
    ALTER TABLE stored_events ALTER COLUMN state SET COMPRESSION lz4;
    ALTER TABLE stored_snapshots ALTER COLUMN state SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;

-- The functions that the program calls fix their search path; the helpers run inside those.

-- One writer of the log at a time: a position that is given out is committed, or gone, before the
-- next one is. An advisory lock, for a table lock would keep autovacuum away.
CREATE FUNCTION lock_log() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(
        (1702258278::bigint << 32) | 'stored_events'::regclass::oid::bigint
    );
END $$;

-- Refuses rows that would not follow the stored ones. SQLSTATE EF001: a row is there already;
-- EF002: a gap; EF003: the stream was deleted. The detail names the stream.
CREATE FUNCTION check_end(stream text, first bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    stored bigint;
BEGIN
    SELECT originator_version INTO stored FROM stored_events
        WHERE originator_id = stream ORDER BY originator_version DESC LIMIT 1;
    IF stored = first - 1 THEN
        RETURN;
    ELSIF stored >= first THEN
        RAISE EXCEPTION 'version % is taken', first USING ERRCODE = 'EF001', DETAIL = stream;
    ELSIF EXISTS (SELECT FROM deleted_streams WHERE originator_id = stream) THEN
        RAISE EXCEPTION 'the stream was deleted' USING ERRCODE = 'EF003', DETAIL = stream;
    ELSIF coalesce(stored, 0) < first - 1 THEN
        RAISE EXCEPTION 'rows from version % on would leave a gap after version %',
            first, coalesce(stored, 0) USING ERRCODE = 'EF002', DETAIL = stream;
    END IF;
END $$;

CREATE FUNCTION insert_run(stream text, first bigint, run_topics text[], run_states bytea[])
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    positions bigint[];
BEGIN
    WITH inserted AS (
        INSERT INTO stored_events (originator_id, originator_version, topic, state)
        SELECT stream, first + row.n - 1, row.topic, row.state
        FROM unnest(run_topics, run_states) WITH ORDINALITY AS row (topic, state, n)
        ORDER BY row.n
        RETURNING notification_id
    )
    SELECT array_agg(notification_id) INTO positions FROM inserted;
    RETURN positions;
END $$;

-- Stores runs of rows and returns their positions. Run `i` are the next `counts[i]` topics and
-- states. SQLSTATE EF004: the key was used before. What most appends need is written out here: with
-- calls of the helpers, the log is locked for half as long again.
CREATE FUNCTION append_events(
    streams text[], firsts bigint[], counts integer[], topics text[], states bytea[], key bytea
) RETURNS bigint[]
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    positions bigint[] := '{}';
    start integer := 1;
    stored bigint;
    place bigint;
BEGIN
    -- As lock_log().
    PERFORM pg_advisory_xact_lock(
        (1702258278::bigint << 32) | 'stored_events'::regclass::oid::bigint
    );
    FOR run IN 1 .. cardinality(streams) LOOP
        SELECT originator_version INTO stored FROM stored_events
            WHERE originator_id = streams[run] ORDER BY originator_version DESC LIMIT 1;
        IF stored IS DISTINCT FROM firsts[run] - 1 THEN
            PERFORM check_end(streams[run], firsts[run]);
        END IF;
        IF counts[run] = 1 THEN
            INSERT INTO stored_events (originator_id, originator_version, topic, state)
                VALUES (streams[run], firsts[run], topics[start], states[start])
                RETURNING notification_id INTO place;
            positions := positions || place;
        ELSE
            positions := positions || insert_run(
                streams[run],
                firsts[run],
                topics[start : start + counts[run] - 1],
                states[start : start + counts[run] - 1]
            );
        END IF;
        start := start + counts[run];
    END LOOP;
    IF key IS NOT NULL THEN
        INSERT INTO append_keys VALUES (streams[1], key, firsts[1], counts[1])
            ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the key was used before'
                USING ERRCODE = 'EF004', DETAIL = streams[1];
        END IF;
    END IF;
    PERFORM pg_notify('everfold_' || md5(current_schema()), '');
    RETURN positions;
END $$;

-- Makes a stream of a header, the source's rows 2..`upto` and a tail; returns its last version.
-- SQLSTATE EF005: the source does not have all these rows.
CREATE FUNCTION copy_stream(
    source text, upto bigint, target text, header_topic text, header_state bytea,
    tail_topics text[], tail_states bytea[]
) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    copied bigint;
BEGIN
    PERFORM lock_log();
    PERFORM check_end(target, 1);
    PERFORM insert_run(target, 1, ARRAY[header_topic], ARRAY[header_state]);
    INSERT INTO stored_events (originator_id, originator_version, topic, state)
        SELECT target, originator_version, topic, state FROM stored_events
        WHERE originator_id = source AND originator_version BETWEEN 2 AND upto
        ORDER BY originator_version;
    GET DIAGNOSTICS copied = ROW_COUNT;
    IF copied <> upto - 1 OR NOT EXISTS (
        SELECT FROM stored_events WHERE originator_id = source AND originator_version = 1
    ) THEN
        RAISE EXCEPTION 'there are % rows from 2 to %', copied, upto
            USING ERRCODE = 'EF005', DETAIL = source;
    END IF;
    PERFORM insert_run(target, upto + 1, tail_topics, tail_states);
    PERFORM pg_notify('everfold_' || md5(current_schema()), '');
    RETURN upto + cardinality(tail_topics);
END $$;

CREATE FUNCTION delete_stream(stream text) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    last bigint;
BEGIN
    PERFORM lock_log();
    SELECT max(originator_version) INTO last FROM stored_events WHERE originator_id = stream;
    DELETE FROM stored_snapshots WHERE originator_id = stream;
    DELETE FROM append_keys WHERE originator_id = stream;
    IF last IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO deleted_streams VALUES (stream, last) ON CONFLICT DO NOTHING;
    DELETE FROM stored_events WHERE originator_id = stream;
    RETURN true;
END $$;

-- Keeps the newest two snapshots of a stream; none of a deleted one.
CREATE FUNCTION save_snapshot(stream text, version bigint, new_topic text, new_state bytea)
RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO stored_snapshots (originator_id, originator_version, topic, state)
        SELECT stream, version, new_topic, new_state
        WHERE NOT EXISTS (SELECT FROM deleted_streams WHERE originator_id = stream)
        ON CONFLICT (originator_id, originator_version)
        DO UPDATE SET topic = excluded.topic, state = excluded.state;
    DELETE FROM stored_snapshots WHERE originator_id = stream AND originator_version < (
        SELECT originator_version FROM stored_snapshots WHERE originator_id = stream
        ORDER BY originator_version DESC OFFSET 1 LIMIT 1
    );
END $$;
