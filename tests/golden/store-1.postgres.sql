-- A dump of an everfold store, schema 1; run it with the schema to be filled as the search path.

CREATE FUNCTION append_events(streams text[], firsts bigint[], counts integer[], topics text[], states bytea[], key bytea) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
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

CREATE FUNCTION check_end(stream text, first bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION check_isolation() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the log is written and followed in READ COMMITTED transactions alone'
            USING ERRCODE = 'feature_not_supported';
    END IF;
END $$;

CREATE PROCEDURE commit_copy(IN source text, IN upto bigint, IN target text, IN header_topic text, IN header_state bytea, IN tail_topics text[], IN tail_states bytea[], INOUT version bigint DEFAULT NULL::bigint)
    LANGUAGE plpgsql
    AS $$
BEGIN
    version := copy_stream(
        source, upto, target, header_topic, header_state, tail_topics, tail_states
    );
    COMMIT;
    PERFORM wake_followers();
END $$;

CREATE PROCEDURE commit_event(IN stream text, IN version bigint, IN new_topic text, IN new_state bytea, IN key bytea, INOUT place bigint DEFAULT NULL::bigint)
    LANGUAGE plpgsql
    AS $$
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

CREATE PROCEDURE commit_events(IN streams text[], IN firsts bigint[], IN counts integer[], IN topics text[], IN states bytea[], IN key bytea, INOUT positions bigint[] DEFAULT NULL::bigint[])
    LANGUAGE plpgsql
    AS $$
BEGIN
    positions := append_events(streams, firsts, counts, topics, states, key);
    COMMIT;
    PERFORM wake_followers();
END $$;

CREATE FUNCTION copy_stream(source text, upto bigint, target text, header_topic text, header_state bytea, tail_topics text[], tail_states bytea[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
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

CREATE FUNCTION delete_stream(stream text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
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

CREATE FUNCTION enter_log() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Not "SELECT last_value": that one may see, for a moment, a number that is not given out yet.
    PERFORM pg_advisory_xact_lock_shared(
        'stored_events'::regclass::oid::integer # 1702258278,
        (coalesce(pg_sequence_last_value('stored_events_notification_id_seq'), 0) << 32 >> 32)::integer
    );
END $$;

CREATE FUNCTION hold_streams(streams text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    key integer;
BEGIN
    PERFORM check_isolation();
    FOR key IN SELECT DISTINCT hashtext(stream) & 1023 FROM unnest(streams) AS stream ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock('deleted_streams'::regclass::oid::integer # 1702258278, key);
    END LOOP;
END $$;

CREATE FUNCTION insert_run(stream text, first bigint, run_topics text[], run_states bytea[]) RETURNS bigint[]
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION save_snapshot(stream text, version bigint, new_topic text, new_state bytea) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
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

CREATE FUNCTION settled_position(OUT place bigint, OUT is_held boolean) RETURNS record
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
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

CREATE FUNCTION share_stream(stream text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM check_isolation();
    PERFORM pg_advisory_xact_lock_shared(
        'deleted_streams'::regclass::oid::integer # 1702258278, hashtext(stream) & 1023
    );
END $$;

CREATE FUNCTION wake_followers() RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
BEGIN
    PERFORM pg_notify('everfold_' || md5(current_schema()), '');
END $$;

CREATE TABLE append_keys (
    originator_id text NOT NULL COLLATE pg_catalog."C",
    key bytea NOT NULL,
    first_version bigint NOT NULL,
    row_count integer NOT NULL
);

CREATE TABLE deleted_streams (
    originator_id text NOT NULL COLLATE pg_catalog."C",
    last_version bigint NOT NULL
);

CREATE TABLE everfold_schema (
    version integer NOT NULL,
    name text NOT NULL,
    applied_ms bigint NOT NULL
);

CREATE TABLE stored_events (
    notification_id bigint NOT NULL,
    originator_version bigint NOT NULL,
    originator_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    state bytea NOT NULL
);

CREATE SEQUENCE stored_events_notification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE stored_events_notification_id_seq OWNED BY stored_events.notification_id;

CREATE TABLE stored_snapshots (
    originator_version bigint NOT NULL,
    originator_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    state bytea NOT NULL
);

ALTER TABLE ONLY stored_events ALTER COLUMN notification_id SET DEFAULT nextval('stored_events_notification_id_seq'::regclass);

INSERT INTO append_keys (originator_id, key, first_version, row_count) VALUES ('golden-é', '\x676f6c64656e2d6b6579', 2, 3);

INSERT INTO deleted_streams (originator_id, last_version) VALUES ('golden-deleted', 1);

INSERT INTO everfold_schema (version, name, applied_ms) VALUES (1, 'streams', 1796018744351);

INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (2, 1, 'golden-é', 'session/created', '\x7b226576656e744964223a22676f6c64656e2d30303030222c2274696d65223a313730303030303030303030302c2264617461223a7b2276657273696f6e223a332c226964223a22676f6c64656e2dc3a9222c22637265617465644174223a313730303030303030303030302c226973536565646564223a66616c73657d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (3, 2, 'golden-é', 'turn/start', '\x7b226576656e744964223a22676f6c64656e2d30303031222c2274696d65223a313730303030303030303030312c2264617461223a7b227475726e223a317d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (4, 3, 'golden-é', 'user/message', '\x7b226576656e744964223a22676f6c64656e2d30303032222c2274696d65223a313730303030303030303030322c226163746f72223a22757365723a616e6e222c22636f7272656c6174696f6e4964223a22632d31222c2264617461223a7b22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a22636f756e742074686520626f617473227d2c7b2274797065223a22696d616765222c226174746163686d656e74223a7b226174746163686d656e744964223a227368613235363a61626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162222c226d6564696154797065223a22696d6167652f706e67222c226279746573223a343039362c227769647468223a36342c22686569676874223a36347d7d5d2c22736f75726365223a7b226b696e64223a2275736572227d2c22726f6c65223a2275736572222c226964223a226d31227d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (5, 4, 'golden-é', 'request/header', '\x7b226576656e744964223a22676f6c64656e2d30303033222c2274696d65223a313730303030303030303030332c2264617461223a7b22686561646572223a7b22636f6e666967223a7b2270726f7669646572223a227363726970746564222c226d6f64656c223a226d2d31227d7d2c22726561736f6e223a22696e697469616c227d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (6, 5, 'golden-é', 'assistant/message', '\x7b226576656e744964223a22676f6c64656e2d30303034222c2274696d65223a313730303030303030303030342c2264617461223a7b227475726e223a312c2273746570223a312c226d657373616765223a7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a2254687265652ee280a84e554c3a5c753030303020c3a920f09f9aa4227d5d2c22736f75726365223a7b226b696e64223a226d6f64656c222c2270726f7669646572223a227363726970746564222c226d6f64656c223a226d2d31227d2c226964223a226d32227d2c2273747265616d223a5b5d2c227573616765223a7b22696e707574546f6b656e73223a31322c226f7574707574546f6b656e73223a327d7d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (7, 6, 'golden-é', 'image/offload', '\x7b226576656e744964223a22676f6c64656e2d30303035222c2274696d65223a313730303030303030303030352c226163746f72223a22706c7567696e3a696d6167652d6f66666c6f6164222c2264617461223a7b2274617267657473223a5b7b22736571223a312c22696d616765496e6465786573223a5b305d7d5d7d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (8, 7, 'golden-é', 'user/message', '\x7b22737572666163654f70223a7b226f70223a227265706c616365222c227374617274536571223a312c22656e64536571223a337d2c22736f757263654576656e7453657173223a5b312c335d2c226576656e744964223a22676f6c64656e2d30303036222c2274696d65223a313730303030303030303030362c2264617461223a7b22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a2273756d6d617279227d5d2c22736f75726365223a7b226b696e64223a22706c7567696e222c22706c7567696e223a22636f6d70616374696f6e227d2c22726f6c65223a2275736572222c226964223a226d33227d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (9, 8, 'golden-é', 'acme/note?', '\x7b226576656e744964223a22676f6c64656e2d30303037222c2274696d65223a313730303030303030303030372c2264617461223a7b226e223a393030373139393235343734303939312c2266223a302e312c2265223a31652d3330302c226e6f7468696e67223a6e756c6c7d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (10, 9, 'golden-é', 'acme/was-i-100%25%3F%40%C3%BC?', '\x7b226576656e744964223a22676f6c64656e2d30303038222c2274696d65223a313730303030303030303030382c2264617461223a7b226c697374223a5b312c322e352c747275652c66616c73652c22225d7d7d');
INSERT INTO stored_events (notification_id, originator_version, originator_id, topic, state) VALUES (11, 10, 'golden-é', 'session/title', '\x7b226576656e744964223a22676f6c64656e2d30303039222c2274696d65223a313730303030303030303030392c2264617461223a2261207061796c6f61642074686174206973206e6f206f626a656374227d');

INSERT INTO stored_snapshots (originator_version, originator_id, topic, state) VALUES (6, 'golden-é', 'golden-fold@1', '\x676f6c64656e2000207374617465');

SELECT pg_catalog.setval('stored_events_notification_id_seq', 11, true);

ALTER TABLE ONLY append_keys
    ADD CONSTRAINT append_keys_pkey PRIMARY KEY (originator_id, key);

ALTER TABLE ONLY deleted_streams
    ADD CONSTRAINT deleted_streams_pkey PRIMARY KEY (originator_id);

ALTER TABLE ONLY everfold_schema
    ADD CONSTRAINT everfold_schema_pkey PRIMARY KEY (version);

ALTER TABLE ONLY stored_events
    ADD CONSTRAINT stored_events_pkey PRIMARY KEY (originator_id, originator_version);

ALTER TABLE ONLY stored_snapshots
    ADD CONSTRAINT stored_snapshots_pkey PRIMARY KEY (originator_id, originator_version);

CREATE UNIQUE INDEX stored_events_notification_id_idx ON stored_events USING btree (notification_id);
