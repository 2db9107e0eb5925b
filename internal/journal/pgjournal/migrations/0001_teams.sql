-- Teams and their records.

CREATE TABLE team (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL UNIQUE,
    journal text NOT NULL,                      -- the id of the journal, where its chain begins
    made    bytea NOT NULL,                     -- the id of the transaction that created the team
    last    bigint NOT NULL CHECK (last >= 0),  -- the seq of the last record
    ends    bigint NOT NULL CHECK (ends >= 0),  -- bytes of data in all records
    digest  bytea NOT NULL                      -- the digest of the last record
) WITH (fillfactor = 50);                       -- each append updates the row: new versions stay in its page

COMMENT ON TABLE team IS 'A row for each team. Whoever appends to its journal locks the row.';

CREATE TABLE record (
    team    bigint NOT NULL,
    seq     bigint NOT NULL CHECK (seq > 0),
    id      bytea NOT NULL,                     -- the id of the append
    digest  bytea NOT NULL,                     -- SHA-256(digest of the record before, data)
    ends    bigint NOT NULL,                    -- bytes of data up to here, this record included
    data    bytea NOT NULL,
    PRIMARY KEY (team, seq),
    UNIQUE (team, id)
);

COMMENT ON TABLE record IS 'The history of all teams. Rows are never changed.';
