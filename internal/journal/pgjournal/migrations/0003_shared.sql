-- What the processes of a team share besides its history.

CREATE TABLE lease (
    team    bigint NOT NULL,
    name    text COLLATE "C" NOT NULL,
    fence   bigint NOT NULL CHECK (fence > 0),  -- grows with each holder
    token   bytea NOT NULL,                     -- the id of the acquisition
    holder  text NOT NULL,                      -- the process that has it, as JSON
    until   timestamptz NOT NULL,               -- by the clock of the server
    PRIMARY KEY (team, name)
) WITH (fillfactor = 50);                       -- each renewal updates the row: new versions stay in its page

COMMENT ON TABLE lease IS 'The right of one process to do something for a team. A row stays when the lease is free.';

CREATE TABLE value (
    team    bigint NOT NULL,
    key     text COLLATE "C" NOT NULL,
    data    bytea NOT NULL,
    PRIMARY KEY (team, key)
) WITH (fillfactor = 50);

COMMENT ON TABLE value IS 'Small texts that are replaced as a whole: heartbeats, saved work.';
