package wire

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"
)

// Pool is a database/sql pool over a [Connector].
type Pool struct {
	*sql.DB
	connector *Connector
	postgres  *pgConnector // of PostgreSQL's pools
}

// NewPool opens a pool over inner; no connection is made before the first use.
func NewPool(inner driver.Connector, opts Options) *Pool {
	c := NewConnector(inner, opts)
	return &Pool{DB: sql.OpenDB(c), connector: c}
}

// Stats returns what the pool has sent so far.
func (p *Pool) Stats() Stats {
	s := p.connector.Stats()
	if p.postgres != nil {
		s.Floors, s.Wraps = p.postgres.floors.Load(), p.postgres.wraps.Load()
	}
	return s
}

// SQLite is how a database file is opened.
type SQLite struct {
	Path string
	// Create makes a missing file. Without it a missing file is an error.
	Create bool
	// ReadOnly makes connections that cannot write.
	ReadOnly bool
	// Synchronous is OFF, NORMAL, FULL or EXTRA; empty means NORMAL: a commit survives the end of the process, FULL survives the machine's too.
	Synchronous string
	// BusyTimeout is how long a statement waits for another process's lock; zero means 5s.
	BusyTimeout time.Duration
}

// DSN returns the data source name: WAL, immediate transactions, one text form for times.
func (s SQLite) DSN() (string, error) {
	sync := strings.ToUpper(s.Synchronous)
	switch sync {
	case "":
		sync = "NORMAL"
	case "OFF", "NORMAL", "FULL", "EXTRA":
	default:
		return "", fmt.Errorf("wire: sqlite synchronous %q is not OFF, NORMAL, FULL or EXTRA", s.Synchronous)
	}
	busy := s.BusyTimeout
	if busy == 0 {
		busy = 5 * time.Second
	}
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous("+sync+")")
	q.Add("_pragma", "foreign_keys(1)")
	q.Set("_time_format", "sqlite")
	if s.ReadOnly {
		q.Add("_pragma", "query_only(1)")
	} else {
		q.Set("_txlock", "immediate")
	}
	q.Set("mode", "rw")
	if s.Create {
		q.Set("mode", "rwc")
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(s.Path), RawQuery: q.Encode()}).String(), nil
}

// OpenSQLite opens a pool over one database file. MaxOpen is the caller's to set: one for a writer.
func OpenSQLite(s SQLite, opts Options) (*Pool, error) {
	dsn, err := s.DSN()
	if err != nil {
		return nil, err
	}
	inner, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, &ConnectError{Shard: opts.Shard, Err: err}
	}
	opts.Poisons = PoisonsSQLite
	return NewPool(inner, opts), nil
}

// readCommitted is sent on each new connection: the variable's name differs between MySQL 8 and MariaDB, the statement does not.
const readCommitted = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"

// OpenMySQL opens a pool over one database of a MySQL or MariaDB server: affected rows are matched rows, times are UTC, sql_mode and
// READ COMMITTED are set once a connection. Connections in gbk, big5 or sjis are refused, since a quote can hide in their characters.
func OpenMySQL(cfg *mysql.Config, opts Options) (*Pool, error) {
	cfg = cfg.Clone()
	for _, name := range []string{cfg.Collation, cfg.Params["charset"]} {
		for _, bad := range []string{"gbk", "gb18030", "big5", "sjis", "cp932"} {
			if strings.HasPrefix(strings.ToLower(name), bad) {
				return nil, fmt.Errorf("wire: shard %q: character set %q is refused: a quote can hide in its characters; use utf8mb4", opts.Shard, name)
			}
		}
	}
	cfg.ClientFoundRows = true
	cfg.ParseTime = true
	cfg.Loc = time.UTC
	cfg.InterpolateParams = true
	cfg.RejectReadOnly = true
	cfg.MultiStatements = false
	cfg.Logger = &mysql.NopLogger{} // what it would print comes back as errors
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["sql_mode"] = "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
	cfg.Params["time_zone"] = "'+00:00'"
	inner, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, &ConnectError{Shard: opts.Shard, Err: err}
	}
	opts.Setup = append([]string{readCommitted}, opts.Setup...)
	opts.Poisons = PoisonsMySQL
	return NewPool(inner, opts), nil
}

// PoisonsMySQL reports errors after which a MySQL transaction must not commit: these errors abort the statement or the whole transaction, and COMMIT would keep the half before them.
func PoisonsMySQL(err error) bool {
	if errors.Is(err, mysql.ErrInvalidConn) {
		return true
	}
	switch Code(err) {
	case 1205, 1206, 1213, 1020, 1969, 3024, 1317, 1028, 1180, 1792, 1290:
		return true
	}
	return false
}

// PoisonsSQLite reports errors after which a SQLite transaction must not commit: any error
// but a broken constraint, and a statement that could not be prepared, may have rolled back more than itself.
func PoisonsSQLite(err error) bool {
	code := Code(err)
	return code != 0 && code&0xff != 19 && code&0xff != 1
}
