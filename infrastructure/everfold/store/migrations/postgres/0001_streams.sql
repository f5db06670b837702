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

-- The functions that the program calls fix their search path; the helpers run inside those, and the
-- procedures, which may not fix theirs as they commit, in the schema that the session has set.
--
-- Writers of the log do not wait for each other, and positions may be committed in another order than
-- they are given out in. Two advisory locks, held until the transaction has ended, keep that safe. (Not
-- locks of tables: those would keep autovacuum away.)
--
-- * The place in the log, always shared: its second key is the low half of the last position that was given
--   out before. The holder gets only higher ones. See settled_position().
-- * The streams, one of 1,024 keys each: shared by a writer of one stream, so that it is not deleted
--   meanwhile; alone by a writer of several, in one order for all, so that no two wait for each other.

-- What was committed last decides about a row's turn, and about what is settled; a snapshot of long ago does
-- not show that.
CREATE FUNCTION check_isolation() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the log is written and followed in READ COMMITTED transactions alone'
            USING ERRCODE = 'feature_not_supported';
    END IF;
END $$;

CREATE FUNCTION share_stream(stream text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_isolation();
    PERFORM pg_advisory_xact_lock_shared(
        'deleted_streams'::regclass::oid::integer # 1702258278, hashtext(stream) & 1023
    );
END $$;

CREATE FUNCTION hold_streams(streams text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    key integer;
BEGIN
    PERFORM check_isolation();
    FOR key IN SELECT DISTINCT hashtext(stream) & 1023 FROM unnest(streams) AS stream ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock('deleted_streams'::regclass::oid::integer # 1702258278, key);
    END LOOP;
END $$;

CREATE FUNCTION enter_log() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- Not "SELECT last_value": that one may see, for a moment, a number that is not given out yet.
    PERFORM pg_advisory_xact_lock_shared(
        'stored_events'::regclass::oid::integer # 1702258278,
        (coalesce(pg_sequence_last_value('stored_events_notification_id_seq'), 0) << 32 >> 32)::integer
    );
END $$;

-- The position up to which readers may read: no lower one will be committed any more. `is_held` says that a
-- row above it is stored, and a writer that came before that row is still at work.
--
-- A position up to `newest` was given out before that row was committed, so its writer took its lock before
-- the locks are looked at. If it has the lock still, `bound` is below the position. If not, it has committed or
-- is gone, which any later snapshot shows: locks are let go after that. The whole of a lock's position follows
-- from its low half, as long as no transaction stays open for 2,000,000,000 positions.
CREATE FUNCTION settled_position(OUT place bigint, OUT is_held boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    newest bigint;
    bound bigint;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'a standby does not know which writers are at work; '
            'read the global order on the primary server' USING ERRCODE = 'feature_not_supported';
    END IF;
    PERFORM check_isolation();
    SELECT notification_id INTO newest FROM stored_events ORDER BY notification_id DESC LIMIT 1;
    SELECT min(newest + ((objid::bigint - newest) << 32 >> 32)) INTO bound FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND granted
        AND classid = ('stored_events'::regclass::oid::integer # 1702258278)::oid
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
    is_held := coalesce(bound < newest, false);
    IF is_held THEN
        SELECT notification_id INTO newest FROM stored_events WHERE notification_id <= bound
            ORDER BY notification_id DESC LIMIT 1;
    END IF;
    place := coalesce(newest, 0);
END $$;

-- Wakes the followers of the log, in the transaction that it is called in.
CREATE FUNCTION wake_followers() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_notify('everfold_' || md5(current_schema()), '');
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
-- states. SQLSTATE EF004: the key was used before. 23505: another writer has just stored one of the
-- versions; called again, it says which stream that is. Whoever calls it in a transaction of their own
-- calls wake_followers() before they commit.
CREATE FUNCTION append_events(
    streams text[], firsts bigint[], counts integer[], topics text[], states bytea[], key bytea
) RETURNS bigint[]
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    positions bigint[] := '{}';
    start integer := 1;
BEGIN
    IF cardinality(streams) = 1 THEN
        PERFORM share_stream(streams[1]);
    ELSE
        PERFORM hold_streams(streams);
    END IF;
    PERFORM enter_log();
    FOR run IN 1 .. cardinality(streams) LOOP
        -- A statement of its own, before positions are given out: they rise along a stream.
        PERFORM check_end(streams[run], firsts[run]);
        positions := positions || insert_run(
            streams[run],
            firsts[run],
            topics[start : start + counts[run] - 1],
            states[start : start + counts[run] - 1]
        );
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
    RETURN positions;
END $$;

-- As append_events(), in a transaction of its own. Followers are woken by a second one: a transaction that
-- notifies keeps every other one of the server from committing while it waits for the disk.
CREATE PROCEDURE commit_events(
    streams text[], firsts bigint[], counts integer[], topics text[], states bytea[], key bytea,
    INOUT positions bigint[] DEFAULT NULL
)
LANGUAGE plpgsql AS $$
BEGIN
    positions := append_events(streams, firsts, counts, topics, states, key);
    COMMIT;
    PERFORM wake_followers();
END $$;

-- As commit_events(), for one row: what most appends are. So all that most of them need is written out
-- here. What is out of the ordinary, as the first row of a stream, goes the long way.
CREATE PROCEDURE commit_event(
    stream text, version bigint, new_topic text, new_state bytea, key bytea,
    INOUT place bigint DEFAULT NULL
)
LANGUAGE plpgsql AS $$
DECLARE
    stored bigint;
BEGIN
    IF current_setting('transaction_isolation') = 'read committed'
        AND pg_try_advisory_xact_lock_shared(
            'deleted_streams'::regclass::oid::integer # 1702258278, hashtext(stream) & 1023
        )
        AND pg_try_advisory_xact_lock_shared(
            'stored_events'::regclass::oid::integer # 1702258278,
            (coalesce(pg_sequence_last_value('stored_events_notification_id_seq'), 0) << 32 >> 32)::integer
        )
    THEN
        SELECT originator_version INTO stored FROM stored_events
            WHERE originator_id = stream ORDER BY originator_version DESC LIMIT 1;
    END IF;
    IF stored = version - 1 AND key IS NULL THEN
        INSERT INTO stored_events (originator_id, originator_version, topic, state)
            VALUES (stream, version, new_topic, new_state)
            RETURNING notification_id INTO place;
    ELSE
        place := (append_events(
            ARRAY[stream], ARRAY[version], ARRAY[1], ARRAY[new_topic], ARRAY[new_state], key
        ))[1];
    END IF;
    COMMIT;
    PERFORM pg_notify('everfold_' || md5(current_schema()), '');
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
    PERFORM share_stream(target);
    PERFORM enter_log();
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
    RETURN upto + cardinality(tail_topics);
END $$;

-- As copy_stream(), in a transaction of its own.
CREATE PROCEDURE commit_copy(
    source text, upto bigint, target text, header_topic text, header_state bytea,
    tail_topics text[], tail_states bytea[], INOUT version bigint DEFAULT NULL
)
LANGUAGE plpgsql AS $$
BEGIN
    version := copy_stream(
        source, upto, target, header_topic, header_state, tail_topics, tail_states
    );
    COMMIT;
    PERFORM wake_followers();
END $$;

CREATE FUNCTION delete_stream(stream text) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    last bigint;
BEGIN
    PERFORM hold_streams(ARRAY[stream]);
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
    PERFORM share_stream(stream);
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
