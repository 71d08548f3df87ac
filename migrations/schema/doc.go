// Package schema makes and changes the databases of a deployment. It is the only code of the project that runs DDL.
//
//	sets := []schema.Set{schema.Saga(), {Name: "game", FS: files}}   // files: sqlite/0001_hero.sql, mysql/0001_hero.sql, ...
//	report, err := schema.Up(ctx, cfg, sets...)                      // everything: control database, topology, tenants, every place
//	report, err = schema.Provision(ctx, cfg, id, sets...)            // one tenant that was added later
//	states, err := schema.Status(ctx, cfg, sets...)                  // what is pending where; changes nothing
//
// [Up] is safe to run from every process of a deployment at its start: they come one after the other, and those that come later find nothing to do.
// It needs no time limit of its own; ctx bounds it.
//
// # Files
//
// A [Set] is a list of goose files (https://github.com/pressly/goose), a folder for each dialect. Each file holds one DDL statement to go up and one to
// go down:
//
//	-- +goose Up
//	CREATE TABLE IF NOT EXISTS hero (
//		tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
//		player_id VARBINARY(64) NOT NULL,
//		id BIGINT NOT NULL,
//		PRIMARY KEY (tenant_id, player_id, id)
//	);
//
//	-- +goose Down
//	DROP TABLE IF EXISTS hero;
//
// [Lint] says what a set must look like; [Up] lints before it touches anything. Files are applied in the order of their numbers, never out of order,
// and never change once they were applied: their checksums are kept beside the data, and a changed file is a [*ChecksumError] before anything runs.
//
// # What is kept where
//
// Each place (see [dal.Place]) has tdal_version_<set>, goose's own list of applied files, tdal_checksums, one row a file with its checksum and whether
// it was started or applied, and tdal_place, which says whose place the database is, so that two servers named in another order are noticed
// ([*IdentityError]). The control database has the version of every set in every place, and the version that each set should have everywhere: a store
// refuses a place that is behind.
//
// # When it fails
//
// Places are independent: one that fails does not stop the others. [*UpError] says which places are done and, for each other one, at which file it
// stopped and why. Running Up again goes on from there.
//
// MySQL and MariaDB commit DDL by themselves, so a process that dies while a statement runs cannot know whether it took effect. That is why a file has
// one statement: it took effect as a whole or not at all. A statement that may run twice ([Lint] asks for IF NOT EXISTS where there is one) is run again;
// any other one is a [*DirtyError], which says how to go on with [Resolve]. SQLite rolls DDL back, so there it is always run again.
//
// Tested on SQLite and on MariaDB 10.11; the statements are valid on MySQL 8.0 as well.
package schema
