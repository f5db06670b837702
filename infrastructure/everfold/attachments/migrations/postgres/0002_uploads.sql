-- Under which id an account of a provider holds a version, so that all machines name it alike.
CREATE TABLE attachment_uploads (
    account text COLLATE "C" NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    file_id text NOT NULL,
    PRIMARY KEY (account, digest)
);
