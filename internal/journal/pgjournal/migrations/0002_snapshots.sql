-- The states of teams after some of their records: the newest is the snapshot, the others are keyframes.

CREATE TABLE snapshot (
    team    bigint NOT NULL,
    seq     bigint NOT NULL CHECK (seq > 0),
    ends    bigint NOT NULL,                    -- bytes of data up to the record seq
    size    bigint NOT NULL,                    -- bytes of data in this row
    record  bytea NOT NULL,                     -- the digest of the record seq: whose history this is
    sum     bytea NOT NULL,                     -- SHA-256(data)
    data    bytea NOT NULL,
    PRIMARY KEY (team, seq)
);

COMMENT ON TABLE snapshot IS 'Saves reading the history from its start. Rows can be deleted at any time.';
