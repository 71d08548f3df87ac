package schema_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
)

// Every error names what failed and how to go on, and is its sentinel.
func TestErrors(t *testing.T) {
	t.Parallel()
	place := dal.Place{Shard: "s1", Schema: "t_zeta"}
	cause := errors.New("the cause")
	for _, tc := range []struct {
		err      error
		sentinel error
		want     []string
	}{
		{&schema.LintError{Set: "game", File: "mysql/0001_x.sql", Problem: "p", Mend: "m"}, schema.ErrLint, []string{`"game"`, "mysql/0001_x.sql", "p", "m"}},
		{&schema.ChecksumError{Place: place, Set: "game", Version: 1, File: "0001_x.sql", Applied: "a", Found: "b"}, schema.ErrChecksum, []string{"s1/t_zeta", "0001_x.sql", "changed", "new file"}},
		{&schema.ChecksumError{Set: "control", Version: 1, File: "0001_x.sql", Applied: "a"}, schema.ErrChecksum, []string{"control database", "gone"}},
		{&schema.ChecksumError{Place: place, Set: "game", Version: 7, Found: "b"}, schema.ErrChecksum, []string{"number 7", "never recorded"}},
		{&schema.OutOfOrderError{Place: place, Set: "game", Files: []string{"0002_x.sql", "0003_y.sql"}, Version: 9}, schema.ErrOutOfOrder, []string{"0002_x.sql, 0003_y.sql", "9"}},
		{&schema.DirtyError{Place: place, Set: "game", File: "0002_x.sql"}, schema.ErrDirty, []string{"s1/t_zeta", "0002_x.sql", "cannot run twice", "schema.Resolve"}},
		{&schema.DirtyError{Place: place, Set: "game", File: "0002_x.sql", Changed: true}, schema.ErrDirty, []string{"was changed since"}},
		{&schema.LockedError{What: "d", Waited: time.Second, Holder: 7}, schema.ErrLocked, []string{"d", "1s", "connection 7"}},
		{&schema.GrantError{Server: "srv", Op: "create database x", Grant: "GRANT y", Err: cause}, schema.ErrGrant, []string{"srv", "create database x", "run GRANT y;", "the cause"}},
		{&schema.LoginError{Server: "srv", User: "u", Op: "connect with", Code: 1045}, schema.ErrLogin, []string{"srv", `"u"`, "connect with", "1045"}},
		{&schema.IdentityError{Place: place, Found: dal.Place{Shard: "s2"}, Database: "db"}, schema.ErrIdentity, []string{"db", "place s2", "place s1/t_zeta"}},
		{&schema.PlaceConflictError{Database: "db", First: "a", Second: "b"}, schema.ErrPlaceConflict, []string{"db", "both a and b"}},
		{&schema.UpError{Op: "up", Done: []dal.Place{place}, Failed: []schema.Failure{{Place: place, Set: "game", File: "0002_x.sql", Err: cause}}}, cause, []string{"1 done, 1 failed", "s1/t_zeta", `"game"`, "0002_x.sql", "the cause"}},
		{&schema.UpError{Op: "provision", Failed: []schema.Failure{{Err: cause}}}, cause, []string{"provision", "control database"}},
	} {
		if !errors.Is(tc.err, tc.sentinel) || errors.Is(tc.err, errDied) {
			t.Errorf("%T is not its sentinel", tc.err)
		}
		text := tc.err.Error()
		if !strings.HasPrefix(text, "schema: ") {
			t.Errorf("%T: %q does not begin with the package's name", tc.err, text)
		}
		for _, w := range tc.want {
			if !strings.Contains(text, w) {
				t.Errorf("%T: %q lacks %q", tc.err, text, w)
			}
		}
	}
	many := &schema.UpError{Op: "up"}
	for range 400 {
		many.Failed = append(many.Failed, schema.Failure{Place: place, Err: cause})
	}
	if text := many.Error(); len(text) > 1000 || !strings.Contains(text, "395 more") {
		t.Errorf("an error about 400 places has %d bytes: %q", len(text), text)
	}
	if !errors.Is(&schema.GrantError{Err: cause}, cause) {
		t.Error("a *GrantError hides the server's refusal")
	}
}
