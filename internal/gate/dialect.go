package gate

// Dialect is the family of SQL in which a text is read.
type Dialect uint8

const (
	// MySQL is MySQL 8 and MariaDB 10.6 and later, with the sql_mode that the pools pin: backslashes escape, double quotes are strings, || is OR.
	MySQL Dialect = iota + 1
	// SQLite has no escapes; double quotes and square brackets are names, || joins texts.
	SQLite
	// Postgres is PostgreSQL 15 and later with standard_conforming_strings; placeholders are $1, $2.
	Postgres
)

// String returns the dialect's name.
func (d Dialect) String() string {
	switch d {
	case MySQL:
		return "mysql"
	case SQLite:
		return "sqlite"
	case Postgres:
		return "postgres"
	}
	return "unknown dialect"
}
