// Package postgrestest gives tests a real PostgreSQL.
//
// # Authority
//
// It starts servers of its own, each in a new folder and on a unix socket in it, and ends only
// those that it started. [Shared] is one server for all tests of a package; [Start] is one for a
// test that kills it. If [Variable] has the address of a database, Shared is that one, which
// nothing stops. [Server.Schema] gives a test a schema of its own, in which the tests act as a role
// without special rights.
//
// # Guarantees
//
//   - A test is skipped, with the reason, where there is no PostgreSQL: neither the variable, nor
//     initdb and postgres where pg_config says, in the path, or where Debian and Homebrew have them.
//   - A server syncs as it does in production, unless the test says otherwise.
//   - PostgreSQL refuses to run as root. Then it runs as the user postgres, else as nobody.
//   - Servers end with the test process: with [Stop] in TestMain, and on Linux even if the process is
//     killed. The next test removes the folder of a process that was killed.
package postgrestest
