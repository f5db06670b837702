-- Run with the store's schema as the only search path.

-- Which migrations ran, and when (milliseconds since 1970 UTC).
CREATE TABLE attachment_schema (
    version integer NOT NULL PRIMARY KEY,
    name text NOT NULL,
    applied_ms bigint NOT NULL
);

-- The bytes, each once, by their SHA-256; `puts` is how often they were given.
CREATE TABLE attachment_objects (
    size bigint NOT NULL,
    puts bigint NOT NULL,
    digest bytea NOT NULL PRIMARY KEY CHECK (octet_length(digest) = 32),
    data bytea NOT NULL
);

-- Bytes of request versions; they live as long as the image they were made of.
CREATE TABLE attachment_version_bytes (
    size bigint NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    original bytea NOT NULL REFERENCES attachment_objects (digest) ON DELETE CASCADE,
    data bytea NOT NULL,
    PRIMARY KEY (digest, original)
);

CREATE INDEX attachment_version_bytes_original_idx ON attachment_version_bytes (original);

-- Which version was made of an image for a specification. A row never changes.
CREATE TABLE attachment_versions (
    size bigint NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    original bytea NOT NULL REFERENCES attachment_objects (digest) ON DELETE CASCADE,
    key text COLLATE "C" NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    media_type text NOT NULL,
    PRIMARY KEY (original, key)
);

-- Images are compressed already: trying again costs time and gains nothing.
ALTER TABLE attachment_objects ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE attachment_version_bytes ALTER COLUMN data SET STORAGE EXTERNAL;
