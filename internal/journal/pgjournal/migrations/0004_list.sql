-- The list of the teams: a name stands for one team in use of a project.

ALTER TABLE team
    ADD COLUMN id       text COLLATE "C",
    ADD COLUMN project  text COLLATE "C" NOT NULL DEFAULT '',   -- what the team works in
    ADD COLUMN archived boolean NOT NULL DEFAULT false,         -- it is finished, and its name is free
    DROP CONSTRAINT team_name_key;
UPDATE team SET id = journal;
ALTER TABLE team ALTER COLUMN id SET NOT NULL, ADD UNIQUE (id);

CREATE UNIQUE INDEX team_in_use ON team (project, name) WHERE NOT archived;
